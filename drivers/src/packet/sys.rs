//! A packet socket with its receive ring, for which there is no safe wrapper. This is the only `unsafe`
//! code of this driver.
//!
//! The ring is of version 2 (`packet_mmap` in the kernel's documentation): each frame has a slot, which
//! belongs to the process once its status says so, and to the kernel again when the status is reset.
//! Version 3 would pass blocks of frames, which is later.
#![allow(unsafe_code)]

use super::frame::{ETHERNET, ETHERTYPE, MAC};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::{CString, c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a ring for frames of the usual length.
const RING: usize = 4 << 20;
/// Smallest number of slots of a ring.
const SLOTS_MIN: usize = 256;
/// Longest data of a frame that is used, even if the interface takes longer ones.
const DATA_MAX: usize = 9_000;
/// Bytes that the kernel writes in front of the frame in its slot, at most.
const SLOT_HEAD: usize = 128;

/// A socket for the frames of one process on one interface.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    ring: Ring,
    mac: [u8; MAC],
    data_max: usize,
}

/// The mapped slots.
#[derive(Debug)]
struct Ring {
    start: *mut u8,
    slot: usize,
    count: usize,
    next: usize,
}

// SAFETY: the mapping belongs to the ring alone and may be used by any one thread at a time.
unsafe impl Send for Ring {}

/// Opens a packet socket without a protocol, so that no frame arrives before the ring and the filter are
/// set up.
pub(super) fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: creates a descriptor, which has no other owner.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?)) }
}

impl Socket {
    /// Opens a socket for frames to this port that arrive on an interface.
    ///
    /// # Errors
    /// This process may not open such sockets (`EPERM`), there is no such interface, or it is not Ethernet.
    pub fn open(interface: &str, port: u16) -> io::Result<Socket> {
        let fd = socket()?;
        let data_max = mtu(&fd, interface)?.min(DATA_MAX);
        let slot = (SLOT_HEAD + ETHERNET + data_max).next_power_of_two();
        let count = (RING / slot).max(SLOTS_MIN);
        set(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        let block = slot.max(64 << 10);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: (slot * count / block) as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: count as u32,
        };
        set(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        attach(&fd, port)?;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { mmap(std::ptr::null_mut(), slot * count, access, flags, &fd, 0)? };
        let ring = Ring { start: start.cast(), slot, count, next: 0 };
        let mac = bind(&fd, interface)?;
        Ok(Socket { fd, ring, mac, data_max })
    }

    /// Hardware address of the interface.
    pub fn mac(&self) -> [u8; MAC] {
        self.mac
    }

    /// Longest data of a frame, in bytes.
    pub fn data_max(&self) -> usize {
        self.data_max
    }

    /// Longest data of a frame now, if the interface's MTU has become smaller.
    pub fn data_now(&self, interface: &str) -> usize {
        mtu(&self.fd, interface).map_or(self.data_max, |mtu| mtu.min(self.data_max))
    }

    /// Frames that the ring holds at most.
    pub fn slots(&self) -> usize {
        self.ring.count
    }

    /// The oldest frame, with its Ethernet header; it stays valid until it is released.
    #[inline]
    pub fn frame(&self) -> Option<&[u8]> {
        let slot = self.ring.slot_at(self.ring.next);
        if self.ring.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours until its status is reset, which needs `&mut self`; the header that the
        // kernel has written is at its beginning, and its fields are checked against the size of the slot.
        unsafe {
            let header = &*slot.cast::<libc::tpacket2_hdr>();
            let (at, len) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
            let len = len.min(self.ring.slot.saturating_sub(at));
            Some(std::slice::from_raw_parts(slot.add(at.min(self.ring.slot)), len))
        }
    }

    /// Returns the slot of the oldest frame to the kernel.
    #[inline]
    pub fn release(&mut self) {
        self.ring.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.ring.next = if self.ring.next + 1 == self.ring.count { 0 } else { self.ring.next + 1 };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Ring {
    #[inline]
    fn slot_at(&self, index: usize) -> *mut u8 {
        // SAFETY: `index` is below `count`, so this is inside the mapping.
        unsafe { self.start.add(index * self.slot) }
    }

    /// Status of the next slot: owned by the kernel or by the process.
    #[inline]
    fn status(&self) -> &AtomicU32 {
        // SAFETY: a slot begins with its status, aligned as the kernel's header is, and the kernel writes
        // it atomically.
        unsafe { AtomicU32::from_ptr(self.slot_at(self.next).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to the ring, and no reference into it is left.
        let _ = unsafe { munmap(self.start.cast(), self.slot * self.count) };
    }
}

/// Attaches a filter by which the kernel drops frames for other ports.
fn attach(fd: &OwnedFd, port: u16) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, ETHERNET as u32),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, u32::from(port)),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
}

/// Binds the socket to an interface and our EtherType; returns the hardware address.
fn bind(fd: &OwnedFd, interface: &str) -> io::Result<[u8; MAC]> {
    let index = nix::net::if_::if_nametoindex(interface)?;
    // SAFETY: all zeroes are a valid address; sizes and pointers are those of the same variable.
    let (address, kind) = unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETHERTYPE.to_be();
        address.sll_ifindex = index as i32;
        let mut len = size_of_val(&address) as libc::socklen_t;
        check(libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len))?;
        check(libc::getsockname(fd.as_raw_fd(), (&raw mut address).cast(), &raw mut len))?;
        (address, address.sll_hatype)
    };
    if !matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) || usize::from(address.sll_halen) != MAC {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "the interface is not Ethernet"));
    }
    let [a, b, c, d, e, f, ..] = address.sll_addr;
    Ok([a, b, c, d, e, f])
}

/// Longest data of a frame on an interface.
fn mtu(fd: &OwnedFd, interface: &str) -> io::Result<usize> {
    let name = CString::new(interface)?;
    // SAFETY: all zeroes are a valid request; the name is cut to the size of its field, and ends with a
    // zero.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        let room = request.ifr_name.len() - 1;
        for (place, byte) in request.ifr_name.iter_mut().take(room).zip(name.to_bytes()) {
            *place = *byte as libc::c_char;
        }
        check(libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request))?;
        Ok(request.ifr_ifru.ifru_mtu as usize)
    }
}

fn set<T>(fd: &OwnedFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let (place, len) = (std::ptr::from_ref(value).cast::<c_void>(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel reads `len` bytes of `value`, and the memory that it points to, before this
    // returns.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, place, len) }).map(drop)
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
