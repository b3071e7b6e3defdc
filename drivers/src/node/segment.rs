//! The memory that two processes share for one link: it is created, sealed, mapped, and read and written
//! here.
//!
//! It is an anonymous file (memfd). It is freed with the last process that has it, however that ends, no
//! other user can open it, and a segment of an older job cannot be found by mistake. Its size is sealed, so
//! that no access faults because the other side has shortened it. Pages are allocated when they are first
//! written.
//!
//! The other process writes here too. Words are atomic; other bytes belong to one side at a time, by the
//! rules of [`crate::shm::ring`]. Offsets are checked against the mapping at each access, so a peer that
//! breaks the rules can corrupt its own data, but nothing outside.

use super::huge::{self, Kind};
use nmad_engine::memory::copy;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
    open,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Creates a file in memory whose size can be sealed.
fn sealable() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // The system may require that the file is not executable (vm.memfd_noexec); old kernels do not know the
    // flag.
    memfd_create("nmad-link", flags | MemfdFlags::NOEXEC_SEAL).or_else(|_| memfd_create("nmad-link", flags))
}

/// Fallback where containers or system call filters forbid memfd: an unnamed file in the folder for shared
/// memory. It cannot be sealed; the other process, which has proved that it is of this job, could shorten
/// it.
fn file_in_memory() -> Result<OwnedFd, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    open("/dev/shm", flags, Mode::RUSR | Mode::WUSR)
}

/// Shared memory, mapped.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: plain memory, whose words are atomic and whose other bytes are accessed by the one thread that
// has the segment.
unsafe impl Send for Segment {}

impl Segment {
    /// Smallest page size of all supported systems, in bytes.
    pub const SHORT_PAGE: usize = 4096;
    /// Largest page size of all supported systems, in bytes.
    pub const LONG_PAGE: usize = 1 << 16;

    /// Creates `len` zero bytes, and the descriptor by which another process can map them.
    pub fn create(len: usize) -> io::Result<(Segment, OwnedFd)> {
        Segment::create_at(len, 1)
    }

    /// Creates `len` zero bytes that are mapped at a multiple of `unit` bytes: any value up to
    /// [`Segment::SHORT_PAGE`], or a power of two from [`Segment::LONG_PAGE`] on that divides `len`.
    pub fn create_at(len: usize, unit: usize) -> io::Result<(Segment, OwnedFd)> {
        let (fd, seals) = match sealable() {
            Ok(fd) => (fd, true),
            Err(refused) => (file_in_memory().map_err(|_| refused)?, false),
        };
        // Beyond this limit the kernel kills the process (SIGXFSZ) instead of returning an error.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| most < len as u64) {
            return Err(Errno::FBIG.into());
        }
        ftruncate(&fd, len as u64)?;
        if seals {
            fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        }
        Ok((Segment::map(&fd, len, unit)?, fd))
    }

    /// Checks that the system lets processes share memory, in one of the ways of [`Segment::create`].
    ///
    /// # Errors
    /// The reason for which it does not.
    pub fn is_possible() -> io::Result<()> {
        Segment::create(Segment::SHORT_PAGE).map(drop)
    }

    /// Maps a segment that another process has created, if it has the agreed length and keeps it.
    pub fn adopt(fd: impl AsFd, len: usize) -> io::Result<Segment> {
        Segment::adopt_at(fd, len, 1)
    }

    /// Maps such a segment at a multiple of `unit` bytes, like [`Segment::create_at`].
    pub fn adopt_at(fd: impl AsFd, len: usize, unit: usize) -> io::Result<Segment> {
        let is_sealed = fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        if fstat(&fd)?.st_size != len as i64 || !is_sealed && sealable().is_ok() {
            return Err(io::Error::other("the shared memory has not the agreed length"));
        }
        Segment::map(fd, len, unit)
    }

    /// Where huge pages may be requested, a segment of that size is aligned to one.
    fn map(fd: impl AsFd, len: usize, unit: usize) -> io::Result<Segment> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let huge = huge::page(Kind::Shared).filter(|&page| len.is_multiple_of(page));
        let base = match huge.map_or(unit, |page| page.max(unit)) {
            ..=Segment::SHORT_PAGE => {
                // SAFETY: a new mapping at an address that the system chooses.
                unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, fd, 0) }?
            }
            unit => {
                let room = room(len, unit)?;
                // SAFETY: replaces the reserved address range, which is used by nothing else.
                unsafe { mmap(room, len, access, MapFlags::SHARED | MapFlags::FIXED, fd, 0) }?
            }
        };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Segment { base, len })
    }

    /// Address of its first byte in this process.
    pub fn start(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Returns the offset behind the last byte.
    #[inline]
    pub fn end(&self) -> usize {
        self.len
    }

    #[inline]
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "inside the segment");
        // SAFETY: the mapping has that many bytes, as was just checked.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// The word at an offset, which is a multiple of eight.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        let [word] = self.words(offset);
        word
    }

    /// Consecutive words from an offset that is a multiple of eight.
    #[inline]
    pub fn words<const COUNT: usize>(&self, offset: usize) -> &[AtomicU64; COUNT] {
        let words = self.at(offset, 8 * COUNT).cast::<[AtomicU64; COUNT]>();
        assert!(offset.is_multiple_of(8), "a word is aligned");
        // SAFETY: inside the mapping and aligned, since mappings begin on a page; atomic for both sides.
        unsafe { &*words }
    }

    /// Prefetches a line for writing, if the processor has such an instruction.
    #[inline]
    pub fn expect(&self, offset: usize) {
        let line = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: a prefetch hint changes neither registers nor memory, and never faults.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly))
        };
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a prefetch hint changes neither registers nor memory, and never faults.
        unsafe {
            std::arch::asm!("prfm pstl1keep, [{}]", in(reg) line, options(nostack, readonly))
        };
        let _ = line;
    }

    /// Prefetches a line for reading, if the processor has such an instruction.
    #[inline]
    pub fn fetch(&self, offset: usize) {
        let line = self.base.as_ptr().wrapping_add(offset);
        // SAFETY: a prefetch hint changes neither registers nor memory, and never faults.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!("prefetcht0 [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a prefetch hint changes neither registers nor memory, and never faults.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, readonly));
        }
        let _ = line;
    }

    /// Writes bytes that currently belong to this side.
    #[inline]
    pub fn put(&self, offset: usize, bytes: &[u8]) {
        let place = self.at(offset, bytes.len());
        // SAFETY: inside the mapping.
        unsafe { copy(bytes.as_ptr(), place, bytes.len()) };
    }

    /// Shorter copies use normal stores: writing part of a line with non-temporal stores is slow. Half and
    /// twice matter to no message: shorter parts are headers.
    pub const NON_TEMPORAL_MIN: usize = 256;

    /// Whether this processor has non-temporal stores.
    pub const HAS_NON_TEMPORAL: bool = cfg!(target_arch = "x86_64");

    /// Writes bytes that currently belong to this side with non-temporal stores: lines that another core
    /// has are not fetched first, and the reader gets the data from memory. [`Segment::order`] comes before
    /// the store that announces them.
    #[inline]
    pub fn put_non_temporal(&self, offset: usize, bytes: &[u8]) {
        if bytes.len() < Segment::NON_TEMPORAL_MIN {
            return self.put(offset, bytes);
        }
        let place = self.at(offset, bytes.len());
        // SAFETY: inside the mapping.
        unsafe { copy_non_temporal(bytes, place) };
    }

    /// Orders all non-temporal stores of this thread before its later stores. Once for many pieces: it waits
    /// until they have left the core.
    #[inline]
    pub fn order() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: all processors of this architecture have the instruction.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }

    /// Writes words that currently belong to this side, at an offset that is a multiple of eight, and bytes
    /// behind them. Words are stored one by one. A wider read of words that were just stored must wait
    /// until they are in the cache.
    #[inline]
    pub fn put_words<const N: usize>(&self, offset: usize, words: &[u64; N], bytes: &[u8]) {
        let place = self.at(offset, size_of_val(words) + bytes.len());
        assert!(offset.is_multiple_of(8), "words are aligned");
        for (index, word) in words.iter().enumerate() {
            // SAFETY: inside the mapping, as was just checked, and aligned, since mappings begin on a page.
            unsafe { (*place.cast::<AtomicU64>().add(index)).store(*word, Ordering::Relaxed) };
        }
        // SAFETY: inside the mapping as well.
        unsafe { copy(bytes.as_ptr(), place.add(size_of_val(words)), bytes.len()) };
    }

    /// Reads bytes that currently belong to this side.
    #[inline]
    pub fn get(&self, offset: usize, bytes: &mut [u8]) {
        let place = self.at(offset, bytes.len());
        // SAFETY: inside the mapping, checked by `at`.
        unsafe { copy(place, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Bytes that currently belong to this side, without copying them. A peer that breaks the rules and
    /// writes them changes the data that is read; only a process that knows the secret of the job can do
    /// that.
    #[inline]
    pub fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        // SAFETY: inside the mapping; the rules of the ring give the bytes to this side.
        unsafe { std::slice::from_raw_parts(self.at(offset, len), len) }
    }
}

/// Copies bytes of this process into a mapping, with non-temporal stores for whole lines.
///
/// # Safety
/// `place` has room for all bytes.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_non_temporal(bytes: &[u8], place: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE: usize = 64;
    let (before, rest) = bytes.split_at(place.align_offset(LINE).min(bytes.len()));
    let (lines, behind) = rest.as_chunks::<LINE>();
    // SAFETY: guaranteed by the caller; the ranges do not overlap, and the streamed part begins on a line.
    unsafe {
        copy(before.as_ptr(), place, before.len());
        let mut place = place.add(before.len());
        for line in lines {
            for at in (0..LINE).step_by(size_of::<__m128i>()) {
                let part = _mm_loadu_si128(line.as_ptr().add(at).cast());
                _mm_stream_si128(place.add(at).cast(), part);
            }
            place = place.add(LINE);
        }
        copy(behind.as_ptr(), place, behind.len());
    }
}

/// Other processors use normal stores.
///
/// # Safety
/// `place` has room for all bytes.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_non_temporal(bytes: &[u8], place: *mut u8) {
    // SAFETY: guaranteed by the caller.
    unsafe { copy(bytes.as_ptr(), place, bytes.len()) };
}

/// Reserves `len` bytes of addresses at a multiple of `unit`, which divides `len`; the range is not
/// accessible yet.
fn room(len: usize, unit: usize) -> io::Result<*mut std::ffi::c_void> {
    let all = len.checked_add(unit).ok_or(Errno::NOMEM)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address that the system chooses.
    let at: *mut u8 = unsafe { mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::empty(), flags) }?.cast();
    let before = at.addr().next_multiple_of(unit) - at.addr();
    let start = at.wrapping_add(before);
    for (at, len) in [(at, before), (start.wrapping_add(len), unit - before)] {
        if len > 0 {
            // SAFETY: a part of the new mapping, before or behind the range that is kept.
            unsafe { munmap(at.cast(), len) }?;
        }
    }
    Ok(start.cast())
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; nothing borrows from it any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_see_the_same_and_a_wrong_length_is_refused() {
        let (ours, fd) = Segment::create(8192).expect("shared memory");
        let theirs = Segment::adopt(&fd, 8192).expect("the same");
        ours.word(4096).store(7, Ordering::Relaxed);
        ours.put(100, b"hello");
        assert_eq!(theirs.word(4096).load(Ordering::Relaxed), 7);
        assert_eq!(theirs.bytes(100, 5), b"hello");
        assert!(Segment::adopt(&fd, 4096).is_err());
        assert!(ftruncate(&fd, 0).is_err(), "no process can shorten it");
        let open = memfd_create("open", MemfdFlags::CLOEXEC).expect("shared memory");
        ftruncate(&open, 8192).expect("a length");
        assert!(Segment::adopt(&open, 8192).is_err(), "not sealed");
    }

    #[test]
    fn a_file_without_a_name_serves_where_nothing_can_be_sealed() {
        let file = file_in_memory().expect("the folder is there");
        ftruncate(&file, 8192).expect("a length");
        let ours = Segment::map(&file, 8192, 1).expect("it can be mapped");
        let theirs = Segment::map(&file, 8192, 1).expect("twice");
        ours.put(100, b"hello");
        assert_eq!(theirs.bytes(100, 5), b"hello");
        // This system can seal files, so an unsealed one is refused.
        assert!(Segment::adopt(&file, 8192).is_err() && Segment::is_possible().is_ok());
    }

    #[test]
    fn both_may_map_it_at_a_multiple_of_many_pages() {
        const UNIT: usize = 1 << 20;
        let (ours, fd) = Segment::create_at(UNIT, UNIT).expect("shared memory");
        let theirs = Segment::adopt_at(&fd, UNIT, UNIT).expect("the same");
        assert!([&ours, &theirs].iter().all(|segment| segment.start().addr().is_multiple_of(UNIT)));
        ours.put(UNIT - 8, b"the last");
        assert_eq!(theirs.bytes(UNIT - 8, 8), b"the last");
    }
}
