//! Work on large memory that several cores share: copies, packing, reductions, ciphers.
//!
//! The work is a range of units, processed in pieces by any thread and in any order. The layer that manages
//! threads installs [`Helpers`], which decide whether other cores take pieces. Without them, and for short
//! work, the caller does everything.

use core::ops::Range;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Shorter work, in bytes, is done by the caller alone. In the nearest cache a copy of this length takes
/// 1.3 us (50 GB/s, EPYC): at half of it, the two clock readings by which helpers measure the speed take a
/// tenth of that time.
pub const LEAST: u64 = 64 << 10;
/// Bytes of a unit of a copy: pieces of copies begin at whole pages of the range.
pub const UNIT: u64 = 4 << 10;

/// Kind of work on memory; each has its own speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Copy within the process.
    Copy,
    /// Copy from or to another process by the system.
    Remote,
    /// Gather from elements with gaps, or scatter to them.
    Pack,
    /// Reduction.
    Reduce,
    /// Encryption or decryption of records.
    Cipher,
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = 5;
}

/// Interface of the layer that manages other cores.
pub trait Helpers: Sync {
    /// Processes each of `units` units of `unit_len` bytes once, on the calling thread and perhaps on
    /// others; returns when all are done.
    fn share(&self, kind: Kind, units: u64, unit_len: u64, work: &(dyn Fn(Range<u64>) + Sync));
}

static HELPERS: AtomicPtr<&'static dyn Helpers> = AtomicPtr::new(core::ptr::null_mut());

/// Installs the helpers for all threads of the process.
pub fn install(helpers: &'static &'static dyn Helpers) {
    HELPERS.store(core::ptr::from_ref(helpers).cast_mut(), Ordering::Release);
}

/// Processes each of `units` units of `unit_len` bytes once, perhaps several at a time; returns when all
/// are done.
pub fn together(kind: Kind, units: u64, unit_len: u64, work: &(dyn Fn(Range<u64>) + Sync)) {
    let helpers = HELPERS.load(Ordering::Acquire);
    if units < 2 || units.saturating_mul(unit_len) < LEAST || helpers.is_null() {
        return work(0..units);
    }
    // SAFETY: it points to a value that lives until the process ends and is only read.
    let helpers = unsafe { *helpers };
    helpers.share(kind, units, unit_len, work);
}

/// Processes `len` bytes in pieces of whole units; `work` gets ranges of bytes.
pub fn bytes_together(kind: Kind, len: u64, work: &(dyn Fn(Range<u64>) + Sync)) {
    together(kind, len.div_ceil(UNIT), UNIT, &|units| {
        work(units.start * UNIT..(units.end * UNIT).min(len));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    /// Helpers that split the work into two pieces, in reverse order.
    struct Two;

    impl Helpers for Two {
        fn share(&self, _: Kind, units: u64, _: u64, work: &(dyn Fn(Range<u64>) + Sync)) {
            work(units / 2..units);
            work(0..units / 2);
        }
    }

    #[test]
    fn all_bytes_are_worked_on_once_with_helpers_and_without() {
        static TWO: &dyn Helpers = &Two;
        let calls = |len: u64| {
            let (calls, sum) = (AtomicU64::new(0), AtomicU64::new(0));
            bytes_together(Kind::Copy, len, &|range| {
                calls.fetch_add(1, Ordering::Relaxed);
                sum.fetch_add(range.end - range.start, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), len, "{len} B");
            calls.into_inner()
        };
        install(&TWO);
        assert_eq!([calls(0), calls(100), calls(LEAST - UNIT)], [1, 1, 1], "short work is done at once");
        assert_eq!([calls(LEAST), calls(LEAST + 1), calls(1_000_001)], [2, 2, 2]);
    }
}
