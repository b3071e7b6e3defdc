//! Cross-memory attach: reads and writes the memory of another process of this node and user by one system
//! call (process_vm_readv, process_vm_writev). The caller knows the addresses.
//!
//! These calls name a process by its id, which the system may reuse after the process has ended. So copies
//! also check a pidfd of the process ([`Process`]).

use crate::interpreted;
use nmad_engine::memory::Segments;
use nmad_engine::memory::together::{Kind, LEAST, bytes_together};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

/// Pieces of either side in one system call.
const PIECES: usize = 128;

/// Another process of this node.
#[derive(Debug, Clone)]
pub struct Process {
    id: i32,
    /// None: the system has no pidfds (before Linux 5.3), and only the id is used.
    handle: Option<Arc<Handle>>,
}

/// A pidfd, which refers to its process even if the id is reused.
#[derive(Debug)]
struct Handle {
    fd: OwnedFd,
    /// When the process was last seen to live: microseconds since [`begin`].
    seen_us: AtomicU64,
}

/// A process that was alive this recently need not be checked again. The kernel assigns ids in turn, so it
/// reuses an id only after all others, by default 32,768 or more, which takes longer.
const SEEN_US: u64 = 1000;

/// Returns the time of the first call in this process, from which [`Handle::seen_us`] counts.
fn begin() -> Instant {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    *BEGIN.get_or_init(Instant::now)
}

/// The pidfds in use by process id, so that each process has one only, however many users it has.
static HANDLES: Mutex<BTreeMap<i32, Weak<Handle>>> = Mutex::new(BTreeMap::new());

/// Opens a pidfd of the process that has this id now. None: the system has no pidfds, or this process runs
/// in valgrind, which does not support them.
pub(crate) fn pidfd(id: i32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(id).filter(|_| !interpreted::by_valgrind())?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

impl Process {
    /// The process that has this id now. If the id came from elsewhere, the caller must verify afterwards
    /// that it is the right process, by a value that can be read only there.
    pub fn of(id: i32) -> Process {
        let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(&id).and_then(Weak::upgrade) {
            let known = Process { id, handle: Some(handle) };
            if known.is_there() {
                return known;
            }
        }
        let handle = pidfd(id).map(|fd| Arc::new(Handle { fd, seen_us: AtomicU64::new(0) }));
        match &handle {
            Some(handle) => _ = handles.insert(id, Arc::downgrade(handle)),
            None => _ = handles.remove(&id),
        }
        Process { id, handle }
    }

    /// The process at the other end of a socket; none: it has no id in this namespace, or has ended.
    pub(crate) fn behind(socket: BorrowedFd<'_>) -> Option<Process> {
        let process = Process::of(peer_of(socket)?.process);
        // The process that made the connection still has it open, so its id has not been reused.
        let mut byte = [0; 1];
        let ended = matches!(net::recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((_, 0)));
        (process.id > 0 && !ended).then_some(process)
    }

    /// The process id.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Returns whether the process has not ended, so that its id has not been reused.
    pub fn is_there(&self) -> bool {
        let Some(handle) = &self.handle else { return true };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut [PollFd::new(&handle.fd, PollFlags::IN)], Some(&now)), Ok(1))
    }

    /// Returns whether the id still belongs to this process. The check is a system call, which takes as
    /// long as a short copy, so its result is valid for [`SEEN_US`].
    fn has_id(&self) -> bool {
        let Some(handle) = &self.handle else { return true };
        let now_us = begin().elapsed().as_micros() as u64;
        let seen_us = handle.seen_us.load(Ordering::Relaxed);
        if seen_us > 0 && now_us.saturating_sub(seen_us) < SEEN_US {
            return true;
        }
        let is_there = self.is_there();
        // Not zero, which stands for never.
        handle.seen_us.store(if is_there { now_us.max(1) } else { 0 }, Ordering::Relaxed);
        is_there
    }
}

fn gone() -> io::Error {
    Errno::SRCH.into()
}

/// Memory of the peer's process as a list of pieces in order. Only the kernel ever dereferences these
/// addresses.
#[derive(Debug, Default)]
pub struct Remote {
    /// Offset of each piece in the whole, its address and its length.
    pieces: Vec<(u64, u64, u64)>,
    len: u64,
}

impl Remote {
    /// Builds the list from addresses and lengths. None: their sum overflows.
    pub fn new(pieces: impl IntoIterator<Item = (u64, u64)>) -> Option<Remote> {
        let mut remote = Remote::default();
        for (address, len) in pieces {
            remote.pieces.push((remote.len, address, len));
            remote.len = remote.len.checked_add(len)?;
            address.checked_add(len)?;
        }
        Some(remote)
    }

    /// Bytes of all pieces.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `list` with the pieces from `offset` on, at most `PIECES` of them and `len` bytes; returns
    /// their number.
    fn fill(&self, offset: u64, len: u64, list: &mut [libc::iovec; PIECES]) -> usize {
        let first = self.pieces.partition_point(|(start, _, len)| start + len <= offset);
        let (mut at, mut left, mut count) = (offset, len, 0);
        for &(start, address, len) in &self.pieces[first..] {
            if left == 0 || count == PIECES {
                break;
            }
            let skip = at - start;
            let len = (len - skip).min(left);
            let base = (address + skip) as usize as *mut libc::c_void;
            list[count] = libc::iovec { iov_base: base, iov_len: len as usize };
            (at, left, count) = (at + len, left - len, count + usize::from(len > 0));
        }
        count
    }

    /// Copies from `offset` into memory of ours, until that is full.
    ///
    /// # Errors
    /// The system does not permit it, or some of the memory does not exist.
    pub fn read(&self, process: &Process, offset: u64, into: &Segments) -> io::Result<()> {
        self.copy(Call::Read, process, offset, into)
    }

    /// Copies all of our memory to `offset`.
    ///
    /// # Errors
    /// Those of [`Remote::read`].
    pub fn write(&self, process: &Process, offset: u64, from: &Segments) -> io::Result<()> {
        self.copy(Call::Write, process, offset, from)
    }

    /// Splits a long copy between idle cores, with a system call for each piece.
    fn copy(&self, by: Call, process: &Process, offset: u64, ours: &Segments) -> io::Result<()> {
        if ours.len() < LEAST {
            return self.copy_piece(by, process, offset, ours);
        }
        let failure = Mutex::new(None);
        bytes_together(Kind::Remote, ours.len(), &|range| {
            let piece = ours.slice(range.start, range.end - range.start);
            if let Err(why) = self.copy_piece(by, process, offset + range.start, &piece) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        });
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn copy_piece(&self, by: Call, process: &Process, offset: u64, ours: &Segments) -> io::Result<()> {
        let mut done = 0;
        while done < ours.len() {
            let rest = ours.slice(done, ours.len() - done);
            let mut local = [EMPTY; PIECES];
            let (mut count, mut len) = (0, 0);
            for piece in rest.iter().take(PIECES) {
                local[count] = libc::iovec { iov_base: piece.start.cast(), iov_len: piece.len };
                (count, len) = (count + 1, len + piece.len as u64);
            }
            let mut remote = [EMPTY; PIECES];
            let pieces = self.fill(offset + done, len, &mut remote);
            done += call(by, process, &local[..count], &remote[..pieces])?;
        }
        Ok(())
    }
}

/// Reads pieces (address and length, in order) of a process into memory of ours of the same total length.
///
/// # Errors
/// Those of [`Remote::read`].
pub fn read(
    process: &Process,
    into: &Segments,
    pieces: impl IntoIterator<Item = (u64, u64)>,
) -> io::Result<()> {
    Remote::new(pieces).ok_or(io::ErrorKind::InvalidInput)?.read(process, 0, into)
}

/// Writes memory of ours to pieces (address and length, in order) of a process of the same total length.
///
/// # Errors
/// Those of [`Remote::read`].
pub fn write(
    process: &Process,
    from: &Segments,
    pieces: impl IntoIterator<Item = (u64, u64)>,
) -> io::Result<()> {
    Remote::new(pieces).ok_or(io::ErrorKind::InvalidInput)?.write(process, 0, from)
}

const EMPTY: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// Reads words at an address of a process.
pub(crate) fn peek(process: &Process, address: u64, into: &mut [u64]) -> io::Result<()> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: size_of_val(into) };
    words(Call::Read, process, local, address)
}

/// Writes words to an address of a process.
pub(crate) fn poke(process: &Process, address: u64, from: &[u64]) -> io::Result<()> {
    let local = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: size_of_val(from) };
    words(Call::Write, process, local, address)
}

fn words(by: Call, process: &Process, local: libc::iovec, address: u64) -> io::Result<()> {
    let remote = libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: local.iov_len };
    match call(by, process, &[local], &[remote])? {
        done if done == local.iov_len as u64 => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Write,
}

fn call(by: Call, process: &Process, local: &[libc::iovec], remote: &[libc::iovec]) -> io::Result<u64> {
    if !process.has_id() {
        return Err(gone());
    }
    let system = match by {
        Call::Read => libc::process_vm_readv,
        Call::Write => libc::process_vm_writev,
    };
    let (ours, theirs) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
    // SAFETY: the local pieces are borrowed, mutably if they are written, or come from segments of a
    // receive region or an order that this side holds, whose creator guarantees that they may be written or
    // read; the remote addresses are not dereferenced in this process.
    let done = unsafe { system(process.id, local.as_ptr(), ours, remote.as_ptr(), theirs, 0) };
    match done {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        done if done < 0 => Err(io::Error::last_os_error()),
        done => Ok(done as u64),
    }
}

/// Permits processes of the same user to access this one's memory if the system requires that (Yama). Other
/// systems reject the call as unknown.
pub(crate) fn permit_access() {
    // SAFETY: changes which processes may access this one; no memory is involved.
    let _ = unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// Credentials of the process at the other end of a socket, as of the time of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// The process id in our namespace; zero: the process is not visible there.
    pub(crate) process: i32,
    /// The effective user id.
    pub(crate) user: u32,
}

/// Returns the credentials of the process at the other end of a socket.
pub(crate) fn peer_of(fd: BorrowedFd<'_>) -> Option<Peer> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let target = (&raw mut peer).cast();
    // SAFETY: `target` has `len` bytes and the kernel writes no more than that.
    let rc =
        unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, target, &mut len) };
    (rc == 0).then_some(Peer { process: peer.pid, user: peer.uid })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::memory::Memory;
    use rustix::fd::AsFd;

    #[test]
    fn pieces_on_both_sides_are_copied_from_any_place() {
        let source = Memory::pattern(100_000, 1);
        let target = Memory::zeroed(100_000);
        let cuts: Vec<_> = (0..1000).map(|i| i * 100..i * 100 + 1 + (i * 37) % 99).collect();
        let (from, into) = (source.pieces(&cuts), target.pieces(&cuts));
        let theirs = Remote::new(from.iter().map(|p| (p.start as u64, p.len as u64))).expect("a sum");
        let me = &Process::of(std::process::id() as i32);
        let (offset, len) = (1234, from.len() - 2000);
        theirs.read(me, offset, &into.slice(offset, len)).expect("one's own memory");
        let (mut sent, mut landed) = (Vec::new(), Vec::new());
        from.slice(offset, len).append_to(&mut sent);
        into.slice(offset, len).append_to(&mut landed);
        assert!(sent == landed);
        assert!(read(me, &into, [(4096, 100_000)]).is_err());
        assert!(Remote::new([(0, u64::MAX), (0, 2)]).is_none());
    }

    #[test]
    fn a_process_that_has_ended_is_not_accessed_though_another_one_has_its_number() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("a program");
        let ended = Process::of(child.id() as i32);
        assert!(ended.is_there() && ended.handle.is_some());
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
        // Simulates the reuse of the id by this process: the system would copy.
        let reused = Process { id: std::process::id() as i32, ..ended.clone() };
        let value = AtomicU64::new(7);
        let address = (&raw const value) as u64;
        let mut found = [0];
        assert_eq!(
            peek(&reused, address, &mut found).expect_err("it is gone").raw_os_error(),
            Some(libc::ESRCH)
        );
        assert_eq!(poke(&reused, address, &[8]).expect_err("it is gone").raw_os_error(), Some(libc::ESRCH));
        assert_eq!(value.load(Ordering::Relaxed), 7);
        let me = Process::of(std::process::id() as i32);
        poke(&me, address, &[8]).expect("one's own memory");
        peek(&me, address, &mut found).expect("one's own memory");
        assert_eq!((found, value.load(Ordering::Relaxed)), ([8], 8));
        assert!(!Process::of(ended.id()).is_there() || Process::of(ended.id()).handle.is_none());
    }

    #[test]
    fn the_process_behind_a_socket_is_found_while_it_is_connected() {
        let (one, other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let behind = Process::behind(one.as_fd()).expect("it is connected");
        assert_eq!(behind.id(), std::process::id() as i32);
        drop(other);
        assert!(Process::behind(one.as_fd()).is_none());
    }
}
