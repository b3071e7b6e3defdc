//! Direct I/O by hint (open(2), `O_DIRECT`): contiguous accesses of whole blocks go past the system's cache.
//!
//! It is faster for data that are read once, or written and not read, on devices as fast as memory. Linux
//! keeps buffered accesses coherent with it, and mapped memory page by page; so whole pages are written and
//! read.

use crate::layout::Kind;
use crate::map;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{self, AtFlags, Mode, OFlags, StatxFlags};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The second descriptor of a file, and which accesses use it.
#[derive(Debug, Default)]
pub(crate) struct Uncached {
    opened: OnceLock<Option<Opened>>,
    reads: AtomicBool,
    writes: AtomicBool,
}

#[derive(Debug)]
struct Opened {
    descriptor: OwnedFd,
    /// Addresses of memory are multiples of it.
    memory: usize,
    /// Offsets and lengths are multiples of it.
    block: u64,
}

impl Uncached {
    /// Turns direct I/O on or off, for reads and for writes, if the file system has it.
    pub(crate) fn set(&self, file: &OwnedFd, reads: bool, writes: bool) {
        let is_supported = (reads || writes) && self.opened.get_or_init(|| Opened::of(file)).is_some();
        self.reads.store(reads && is_supported, Ordering::Relaxed);
        self.writes.store(writes && is_supported, Ordering::Relaxed);
    }

    /// Whether accesses of this kind go past the cache.
    pub(crate) fn is_set(&self, kind: Kind) -> bool {
        match kind {
            Kind::Read => self.reads.load(Ordering::Relaxed),
            Kind::Write => self.writes.load(Ordering::Relaxed),
        }
    }

    /// The descriptor for an access; none: the access goes through the cache.
    #[inline]
    pub(crate) fn descriptor(&self, kind: Kind, offset: u64, bytes: &[u8]) -> Option<&OwnedFd> {
        if !self.is_set(kind) {
            return None;
        }
        let opened = self.opened.get()?.as_ref()?;
        let is_aligned =
            offset.is_multiple_of(opened.block) && (bytes.len() as u64).is_multiple_of(opened.block);
        (is_aligned && bytes.as_ptr().addr().is_multiple_of(opened.memory)).then_some(&opened.descriptor)
    }
}

impl Opened {
    /// Opens the file again; none: its file system has no direct I/O, or does not say how (before Linux 6.1).
    fn of(file: &OwnedFd) -> Option<Opened> {
        let stat = fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
        let (memory, block) = (stat.stx_dio_mem_align as usize, u64::from(stat.stx_dio_offset_align));
        if memory == 0 || block == 0 {
            return None;
        }
        let access = fs::fcntl_getfl(file).ok()? & OFlags::RWMODE;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = access | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NOCTTY;
        let descriptor = fs::open(path, flags, Mode::empty()).ok()?;
        Some(Opened { descriptor, memory, block: block.max(map::page()? as u64) })
    }
}
