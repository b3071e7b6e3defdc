//! A part of a file in the memory of this process, and what happens where the file goes away below it. All
//! of the `unsafe` code about mapped files is here.
//!
//! A system call that fails returns an error. An access to mapped memory that fails is a signal, SIGBUS:
//! another program has shortened the file, the file system has no space for a page that had none, or the
//! device fails. The first mapping of a process installs a handler. If the address is in a [`Map`], the
//! handler puts a page of zeros there and marks the map as broken: its user sees the mark after the copy
//! and repeats the access by system calls, which return the error. Every other SIGBUS goes to the handler
//! that was there before, or ends the process as it would have without this one.

use nmad_engine::memory::copy;
use rustix::fd::BorrowedFd;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// Bytes of a map.
pub(crate) const LEN: usize = 4 << 20;

/// Maps of a process, at most.
const PLACES: usize = 256;

/// Where the maps of this process are, for the handler.
static ALL: [Place; PLACES] = [const { Place::new() }; PLACES];
/// The action of SIGBUS before the handler was installed; none: it cannot be installed.
static BEFORE: OnceLock<Option<libc::sigaction>> = OnceLock::new();
/// [`page`], for the handler.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// The place of one map.
struct Place {
    is_taken: AtomicBool,
    /// The address of its first byte, or 0.
    start: AtomicUsize,
    is_broken: AtomicBool,
}

impl Place {
    const fn new() -> Place {
        Place {
            is_taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Takes a free one.
    fn take() -> Option<&'static Place> {
        let place = ALL.iter().find(|place| !place.is_taken.swap(true, Ordering::AcqRel))?;
        place.is_broken.store(false, Ordering::Relaxed);
        Some(place)
    }

    fn free(&self) {
        self.start.store(0, Ordering::Release);
        self.is_taken.store(false, Ordering::Release);
    }
}

/// [`LEN`] bytes of a file.
pub(crate) struct Map {
    start: NonNull<u8>,
    place: &'static Place,
}

// SAFETY: memory that all threads and processes may access; each access is a copy of bytes.
unsafe impl Send for Map {}

impl Map {
    /// Maps the bytes from `offset` on, a multiple of [`LEN`]. None: the system refuses it, or there are too
    /// many; the file is accessed by system calls then.
    pub(crate) fn new(file: BorrowedFd<'_>, offset: u64, writes: bool) -> Option<Map> {
        BEFORE.get_or_init(install).as_ref()?;
        let place = Place::take()?;
        let protection = if writes { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping, at an address that the system chooses.
        let mapped = unsafe { mmap(null_mut(), LEN, protection, MapFlags::SHARED, file, offset) };
        let Some(start) = mapped.ok().and_then(|start| NonNull::new(start.cast::<u8>())) else {
            place.free();
            return None;
        };
        // SAFETY: the mapping of above. A child of this process does not get it: it would only cost
        // `fork` time.
        let _ = unsafe { madvise(start.as_ptr().cast(), LEN, Advice::LinuxDontFork) };
        place.start.store(start.as_ptr().expose_provenance(), Ordering::Release);
        Some(Map { start, place })
    }

    /// Writes bytes from `at` on; all of them are within the map.
    pub(crate) fn write(&self, at: usize, data: &[u8]) {
        assert!(at <= LEN && data.len() <= LEN - at, "a write is within its map");
        // SAFETY: checked. Nothing in this process refers to the bytes; other threads and processes copy to
        // and from them, and the order of accesses at the same time is not defined.
        unsafe { copy(data.as_ptr(), self.start.as_ptr().add(at), data.len()) };
    }

    /// Reads bytes from `at` on; all of them are within the map.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) {
        assert!(at <= LEN && into.len() <= LEN - at, "a read is within its map");
        // SAFETY: as for a write.
        unsafe { copy(self.start.as_ptr().add(at), into.as_mut_ptr(), into.len()) };
    }

    /// Whether an access since it was made has met no file.
    pub(crate) fn is_broken(&self) -> bool {
        // The handler runs on the thread that copies.
        compiler_fence(Ordering::SeqCst);
        self.place.is_broken.load(Ordering::Relaxed)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // The address may be another mapping's as soon as it is free.
        self.place.start.store(0, Ordering::Release);
        // SAFETY: the mapping is this map's alone, and nothing refers to it.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), LEN) };
        self.place.free();
    }
}

/// Bytes of a page of this system.
pub(crate) fn page() -> Option<usize> {
    // SAFETY: asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok().filter(|page| *page > 0)
}

/// Installs the handler; returns the action before.
fn install() -> Option<libc::sigaction> {
    PAGE.store(page()?, Ordering::Release);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the actions are local, and all zeros are an action. The handler calls only what handlers may.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        let is_done = libc::sigaction(libc::SIGBUS, &raw const action, before.as_mut_ptr()) == 0;
        is_done.then(|| before.assume_init())
    }
}

/// SIGBUS.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives a code, and the address of an access that it reports.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // SAFETY: a place of this thread's own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // A signal that a process has sent has no address.
    let is_repaired = code > 0 && is_repaired(address);
    // SAFETY: as above.
    unsafe { *errno = before };
    if !is_repaired {
        pass_on(signal, info, context);
    }
}

/// Puts zeros where a map has lost its file. False: the address is in none.
fn is_repaired(address: usize) -> bool {
    let is_inside = |place: &&Place| match place.start.load(Ordering::Acquire) {
        0 => false,
        start => address.wrapping_sub(start) < LEN,
    };
    let Some(place) = ALL.iter().find(is_inside) else { return false };
    let page = PAGE.load(Ordering::Acquire);
    let first = std::ptr::with_exposed_provenance_mut::<c_void>(address & !(page - 1));
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: replaces a page of a mapping of this module, of which no reference exists.
    let zeros = unsafe { libc::mmap(first, page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    place.is_broken.store(true, Ordering::Relaxed);
    zeros != libc::MAP_FAILED
}

/// Whether an access of this thread has caused the signal: no process has sent it, and it does not tell of
/// memory that is broken elsewhere.
fn is_of_access(info: *const libc::siginfo_t) -> bool {
    // SAFETY: the system gives a code with each signal.
    let code = unsafe { (*info).si_code };
    code > 0 && code != libc::BUS_MCEERR_AO
}

/// Does what would have been done without the handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.get().and_then(Option::as_ref);
    match before.map(|before| (before.sa_sigaction, before.sa_flags & libc::SA_SIGINFO != 0)) {
        Some((libc::SIG_IGN, _)) if !is_of_access(info) => {}
        None | Some((libc::SIG_DFL | libc::SIG_IGN, _)) => {
            // SAFETY: the default action needs nothing. It ends the process when the access is repeated; a
            // signal that no access has caused is sent again.
            unsafe {
                let action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                libc::sigaction(signal, &raw const action, null_mut());
                if !is_of_access(info) {
                    libc::raise(signal);
                }
            }
        }
        Some((handler, true)) => {
            // SAFETY: whoever installed it has said that it takes these arguments.
            unsafe {
                let handler = std::mem::transmute::<
                    usize,
                    extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void),
                >(handler);
                handler(signal, info, context);
            }
        }
        Some((handler, false)) => {
            // SAFETY: as above.
            let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_written_to_a_map_is_in_the_file_and_a_file_that_was_cut_off_breaks_it() {
        let file: File = tempfile::tempfile().expect("a file");
        file.set_len(2 * LEN as u64).expect("its length");
        let map = Map::new(file.as_fd(), LEN as u64, true).expect("a map");
        map.write(5000, b"there");
        let mut read = [0; 5];
        file.read_exact_at(&mut read, LEN as u64 + 5000).expect("bytes");
        assert_eq!((&read, map.is_broken()), (b"there", false));
        file.set_len(LEN as u64 + 4096).expect("its length");
        map.read(5000, &mut read);
        assert_eq!((read, map.is_broken()), ([0; 5], true));
        map.write(5000, b"nowhere");
        assert_eq!(file.metadata().expect("its length").len(), LEN as u64 + 4096);
        let start = map.start.as_ptr().addr();
        drop(map);
        assert!(!ALL.iter().any(|place| place.start.load(Ordering::Relaxed) == start));
    }

    #[test]
    fn a_file_that_may_only_be_read_is_mapped_to_be_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().write_all_at(b"bytes", 0).expect("its bytes");
        let reader = File::open(file.path()).expect("the file");
        assert!(Map::new(reader.as_fd(), 0, true).is_none());
        let map = Map::new(reader.as_fd(), 0, false).expect("a map");
        let mut read = [0; 5];
        map.read(0, &mut read);
        assert_eq!((&read, map.is_broken()), (b"bytes", false));
    }
}
