//! Reports of the kernel about unmapped memory, so that a cached registration is not used for new memory at
//! the same address.
//!
//! Memory is watched by userfaultfd: not for faults, but for the events of `munmap`, `mmap` over it,
//! `mremap`, `madvise` and `brk`. The unmapping call returns only when a thread of this module has read the
//! event. So a message that is sent after it finds either the event in the log, or the mark that the thread
//! has not logged it yet. Whole mappings are watched, so that the program's mappings are not split. Only
//! private anonymous memory is watched: pages of files and of shared memory can be lost without an event
//! (by truncation, through another mapping, by `shmdt`).

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// Events that the log keeps. A reader that is further behind must assume that all memory was unmapped.
const KEPT: u64 = 256;
/// Bytes of a page.
pub(super) const PAGE: usize = 4096;

/// `linux/userfaultfd.h`: handles no faults of the kernel's, so needs no privilege.
const USER_MODE_ONLY: c_int = 1;
const API: u64 = 0xAA;
const EVENTS: u64 = 1 << 2 | 1 << 3 | 1 << 6;
const IOCTL_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
const IOCTL_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
/// Reports faults of write-protected pages; no page is write-protected, so there are none.
const MODE_WP: u64 = 1 << 1;
const EVENT_REMAP: u8 = 0x14;
const EVENT_REMOVE: u8 = 0x15;
const EVENT_UNMAP: u8 = 0x16;

/// In an entry of `/proc/self/pagemap`: the page is present; it belongs to a file or is shared.
const PRESENT: u64 = 1 << 63;
const SHARED: u64 = 1 << 61;

/// `struct uffd_msg`, for the events that are requested.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    /// Begin and end; for memory that was moved: from, to, length.
    about: [u64; 3],
}

/// Ring of ranges that were unmapped.
struct Log {
    /// Odd while events have been read that are not in the log yet.
    round: AtomicU64,
    count: AtomicU64,
    ranges: [[AtomicUsize; 2]; KEPT as usize],
}

/// The watched memory of this process.
pub(super) struct Notice {
    fd: OwnedFd,
    pages: File,
    log: Log,
}

/// Result of reading the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unmapped {
    /// These ranges were unmapped since the last reading.
    Only(Vec<Range<usize>>),
    /// More events than the log keeps: any memory may have been unmapped.
    Perhaps,
    /// An event is being logged: the log is incomplete now.
    Busy,
}

/// Starts the reports of unmapping with the first call.
///
/// # Errors
/// The kernel provides no reports to this process; the text has the remedy.
pub(crate) fn notice() -> Result<(), String> {
    get().map(drop).map_err(String::from)
}

pub(super) fn get() -> Result<&'static Notice, &'static str> {
    static NOTICE: OnceLock<Result<Notice, String>> = OnceLock::new();
    let begun = NOTICE.get_or_init(|| {
        let failed = |e: io::Error| {
            let remedy = match e.raw_os_error() {
                Some(libc::EPERM) => " (a container needs a seccomp profile that permits userfaultfd)",
                _ => " (Linux 5.11 on x86-64 has it, if built with CONFIG_USERFAULTFD)",
            };
            format!("userfaultfd: {e}{remedy}")
        };
        Notice::new().map_err(failed)
    });
    let notice = begun.as_ref().map_err(String::as_str)?;
    static READER: OnceLock<bool> = OnceLock::new();
    let is_read = READER.get_or_init(|| {
        // Block all signals in the thread: a signal handler of the program that ran here could unmap
        // memory, and wait for this thread.
        let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::uninit(), MaybeUninit::uninit());
        // SAFETY: the first call fills the first set; the second reads it and fills the other.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        }
        let begun = std::thread::Builder::new().name("nmad-unmapped".into()).spawn(|| notice.read());
        // SAFETY: the set was filled above; the call takes two valid pointers, so it has not failed.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
        begun.is_ok()
    });
    is_read.then_some(notice).ok_or("cannot start the thread that reads reports of unmapping")
}

impl Notice {
    fn new() -> io::Result<Notice> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
        // SAFETY: the call takes flags and returns a descriptor or an error.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        let fd = c_int::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: it was created above, and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut api = [API, EVENTS, 0];
        // SAFETY: `struct uffdio_api` has three words.
        if unsafe { libc::ioctl(fd.as_raw_fd(), IOCTL_API, api.as_mut_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let ranges = std::array::from_fn(|_| [AtomicUsize::new(0), AtomicUsize::new(0)]);
        let log = Log { round: AtomicU64::new(0), count: AtomicU64::new(0), ranges };
        Ok(Notice { fd, pages: File::open("/proc/self/pagemap")?, log })
    }

    /// Watches the mappings that contain this memory, and returns them. None: it cannot be watched.
    /// Watching a part of a mapping would split it in two, and `mremap` of both together would fail.
    pub(super) fn watch(&self, memory: &Range<usize>) -> Option<Range<usize>> {
        let all = mappings(memory).ok()??;
        let mut register = [all.start as u64, all.len() as u64, MODE_WP, 0];
        // SAFETY: `struct uffdio_register` has four words. The call changes no memory and no access to it.
        let status = unsafe { libc::ioctl(self.fd.as_raw_fd(), IOCTL_REGISTER, register.as_mut_ptr()) };
        (status >= 0).then_some(all)
    }

    /// Returns whether all of this memory is present, and private to this process.
    pub(super) fn is_private(&self, memory: &Range<usize>) -> bool {
        let mut entries = [0; 8 * 512];
        let mut page = memory.start / PAGE;
        while page < memory.end / PAGE {
            let some = &mut entries[..8 * (memory.end / PAGE - page).min(512)];
            if self.pages.read_exact_at(some, 8 * page as u64).is_err() {
                return false;
            }
            let words = some.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
            if words.clone().any(|entry| entry & PRESENT == 0 || entry & SHARED != 0) {
                return false;
            }
            page += some.len() / 8;
        }
        true
    }

    /// Returns the ranges that were unmapped after the first `seen` events.
    pub(super) fn since(&self, seen: &mut u64) -> Unmapped {
        if self.log.round.load(SeqCst) % 2 == 1 {
            return Unmapped::Busy;
        }
        let (from, count) = (*seen, self.log.count.load(SeqCst));
        *seen = count;
        if count == from {
            return Unmapped::Only(Vec::new());
        }
        let one = |at: u64| {
            let [start, end] = &self.log.ranges[(at % KEPT) as usize];
            start.load(SeqCst)..end.load(SeqCst)
        };
        let ranges = (from.max(count.saturating_sub(KEPT))..count).map(one).collect();
        // Entries that were overwritten meanwhile are invalid.
        match self.log.count.load(SeqCst) - from >= KEPT {
            true => Unmapped::Perhaps,
            false => Unmapped::Only(ranges),
        }
    }

    /// Reads events, in a thread of its own. It neither allocates nor locks: the thread that unmaps may be
    /// inside an allocator.
    fn read(&self) {
        let mut messages = [Message::default(); 16];
        loop {
            let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one entry.
            unsafe { libc::poll(&raw mut poll, 1, -1) };
            self.log.round.fetch_add(1, SeqCst);
            // SAFETY: the kernel writes whole messages, as many as fit.
            let got = unsafe {
                let (at, len) = (messages.as_mut_ptr().cast::<c_void>(), size_of_val(&messages));
                libc::read(self.fd.as_raw_fd(), at, len)
            };
            let count = usize::try_from(got).unwrap_or(0) / size_of::<Message>();
            messages.iter().take(count).for_each(|message| self.log.add(message));
            self.log.round.fetch_add(1, SeqCst);
        }
    }
}

/// The range from the first mapping with some of this memory to the last one; none: not all of it is
/// mapped.
fn mappings(memory: &Range<usize>) -> io::Result<Option<Range<usize>>> {
    let mut maps = BufReader::new(File::open("/proc/self/maps")?);
    let (mut line, mut found) = (String::new(), None::<Range<usize>>);
    while maps.read_line(&mut line)? > 0 {
        let borders = line.split_once(' ').and_then(|(borders, _)| borders.split_once('-'));
        let address = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let (start, end) = borders.map_or((0, 0), |(start, end)| (address(start), address(end)));
        if start >= memory.end {
            break;
        }
        if end > memory.start {
            found = Some(found.map_or(start, |found| found.start)..end);
        }
        line.clear();
    }
    Ok(found.filter(|found| found.start <= memory.start && memory.end <= found.end))
}

impl Log {
    fn add(&self, message: &Message) {
        let [first, second, third] = message.about.map(|word| word as usize);
        let (start, end) = match message.event {
            EVENT_REMAP => (first, first.saturating_add(third)),
            EVENT_REMOVE | EVENT_UNMAP => (first, second),
            _ => return,
        };
        let at = self.count.load(SeqCst);
        let [into_start, into_end] = &self.ranges[(at % KEPT) as usize];
        into_start.store(start, SeqCst);
        into_end.store(end, SeqCst);
        self.count.store(at + 1, SeqCst);
    }
}
