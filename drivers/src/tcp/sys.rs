//! System calls that have no safe wrapper. This is the only `unsafe` code of this driver.

use nmad_engine::memory::Segments;
use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;
use std::mem;

/// Pieces of a receive region that one read fills, at most.
const PIECES: usize = 62;

/// Reads once into `into` and, when that is full, into `behind`. Returns the bytes read (zero: the peer has
/// closed) and the bytes requested, which are fewer than both hold if `into` has very many pieces.
pub fn read_into(fd: BorrowedFd<'_>, into: &Segments, behind: &mut [u8]) -> io::Result<(usize, usize)> {
    let mut list = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES + 1];
    let (mut count, mut asked) = (0, 0);
    for piece in into.iter().take(PIECES) {
        list[count] = libc::iovec { iov_base: piece.start.cast(), iov_len: piece.len };
        count += 1;
        asked += piece.len;
    }
    if asked as u64 == into.len() {
        list[count] = libc::iovec { iov_base: behind.as_mut_ptr().cast(), iov_len: behind.len() };
        count += 1;
        asked += behind.len();
    }
    // SAFETY: the creator of the segments guarantees that they are writable until the receive region is
    // closed, and they come from a receive region that is open now; `behind` is borrowed mutably; `count`
    // entries are set.
    let n = unsafe { libc::readv(fd.as_raw_fd(), list.as_ptr(), count as i32) };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok((n as usize, asked)) }
}

/// Calls a function with the memory of a receive region; `None` if it is more than one piece.
pub fn with_bytes<R>(into: &Segments, f: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
    let mut pieces = into.iter();
    let (Some(piece), None) = (pieces.next(), pieces.next()) else { return None };
    // SAFETY: the creator of the segments guarantees that they are writable and not used otherwise until the
    // receive region is closed, and they come from a receive region that is open now. Only the link of their
    // chunk makes references to them, one at a time.
    Some(f(unsafe { std::slice::from_raw_parts_mut(piece.start, piece.len) }))
}

/// Reads once: up to `want` bytes appended to `partial`, then into `behind`. Returns the numbers of bytes
/// in `partial` and in `behind`; both zero: the peer has closed.
pub fn read_onto(
    fd: BorrowedFd<'_>,
    partial: &mut Vec<u8>,
    want: usize,
    behind: &mut [u8],
) -> io::Result<(usize, usize)> {
    partial.reserve(want);
    let spare = &mut partial.spare_capacity_mut()[..want];
    let list = [
        libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: want },
        libc::iovec { iov_base: behind.as_mut_ptr().cast(), iov_len: behind.len() },
    ];
    // SAFETY: both ranges are borrowed mutably and have the given lengths.
    let n = unsafe { libc::readv(fd.as_raw_fd(), list.as_ptr(), 2) };
    if n < 0 {
        return Err(io::Error::last_os_error());
    }
    let filled = (n as usize).min(want);
    // SAFETY: the kernel has written the first `filled` bytes of the spare capacity.
    unsafe { partial.set_len(partial.len() + filled) };
    Ok((filled, n as usize - filled))
}

/// State of a connection in the kernel.
#[derive(Debug, Clone, Copy)]
pub struct TcpInfo {
    /// Bytes that the peer has not acknowledged, sent or not.
    pub unacknowledged: u32,
    /// Unanswered retransmissions or window probes since the last acknowledgement.
    pub unanswered: u32,
    /// Milliseconds since the last acknowledgement arrived.
    pub silent_ms: u32,
}

/// Queries TCP_INFO; returns also the number of bytes that the kernel has filled in.
fn ask(fd: BorrowedFd<'_>) -> io::Result<(libc::tcp_info, usize)> {
    // SAFETY: a structure of plain numbers, for which zero is a valid value.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    let target = (&raw mut info).cast();
    // SAFETY: `target` has `len` bytes and the kernel writes no more than that.
    let rc = unsafe { libc::getsockopt(fd.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, target, &mut len) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok((info, len as usize)) }
}

/// Queries the state of a connection.
pub fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let (info, _) = ask(fd)?;
    let mut queued: libc::c_int = 0;
    // SAFETY: this request writes one integer.
    if unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut queued) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo {
        unacknowledged: queued as u32,
        unanswered: u32::from(info.tcpi_retransmits) + u32::from(info.tcpi_probes),
        silent_ms: info.tcpi_last_ack_recv,
    })
}

/// What a connection can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Bytes that may still be sent within the peer's receive window. None: the kernel does not report it
    /// (before Linux 5.4).
    pub window: Option<u32>,
    /// Bytes in the send buffer that were not sent yet. None: not reported (before Linux 4.6).
    pub unsent: Option<u32>,
}

/// Asks the kernel what a connection can send.
pub fn sending(fd: BorrowedFd<'_>) -> io::Result<Sending> {
    let (info, len) = ask(fd)?;
    let under_way = info.tcpi_unacked.saturating_mul(info.tcpi_snd_mss);
    let is_told = |offset| len > offset;
    let window = is_told(mem::offset_of!(libc::tcp_info, tcpi_snd_wnd));
    let unsent = is_told(mem::offset_of!(libc::tcp_info, tcpi_notsent_bytes));
    Ok(Sending {
        window: window.then(|| info.tcpi_snd_wnd.saturating_sub(under_way)),
        unsent: unsent.then_some(info.tcpi_notsent_bytes),
    })
}

/// Binds a socket to an interface, so that it does not leave by another one that reaches the same subnet.
pub fn bind_to_device(fd: BorrowedFd<'_>, interface: &str) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, interface.as_bytes())
}

/// Limits the time between two retransmissions or window probes (from Linux 6.15 on).
pub fn set_retry_max_ms(fd: BorrowedFd<'_>, ms: i32) -> io::Result<()> {
    const TCP_RTO_MAX_MS: i32 = 44;
    set(fd, libc::IPPROTO_TCP, TCP_RTO_MAX_MS, &ms.to_ne_bytes())
}

fn set(fd: BorrowedFd<'_>, level: i32, option: i32, value: &[u8]) -> io::Result<()> {
    let len = value.len() as libc::socklen_t;
    // SAFETY: `value` has `len` bytes, which the kernel only reads.
    let rc = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, value.as_ptr().cast(), len) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
