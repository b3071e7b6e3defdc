//! Work on a range of units that several threads do piece by piece, each thread taking the next piece.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Work that several threads share.
pub(crate) struct Split {
    /// Valid while [`crate::share::share`] runs, which waits until no other thread uses it.
    work: &'static (dyn Fn(Range<u64>) + Sync),
    units: u64,
    step: u64,
    next: AtomicU64,
    /// Number of threads beside the caller that work on pieces.
    helpers: AtomicUsize,
    /// A helping thread has panicked.
    is_broken: AtomicBool,
}

impl Split {
    /// # Safety
    /// No thread but the caller begins with this after the lifetime of `work`, and the caller waits for
    /// those that have begun.
    pub(crate) unsafe fn new(work: &(dyn Fn(Range<u64>) + Sync), units: u64, step: u64) -> Arc<Split> {
        // SAFETY: only the lifetime changes, which the caller guarantees.
        let work = unsafe { std::mem::transmute::<&(dyn Fn(_) + Sync), &'static (dyn Fn(_) + Sync)>(work) };
        let (next, helpers, is_broken) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Split { work, units, step, next, helpers, is_broken })
    }

    /// Takes pieces while there are some; returns how many.
    pub(crate) fn work(&self) -> u32 {
        let mut count = 0;
        loop {
            let from = self.next.fetch_add(self.step, Ordering::Relaxed);
            if from >= self.units {
                return count;
            }
            (self.work)(from..self.units.min(from + self.step));
            count += 1;
        }
    }

    /// Counts a further thread; called while the offers are locked.
    pub(crate) fn begin(&self) {
        self.helpers.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes pieces in a thread that has begun; returns how many.
    pub(crate) fn help(&self) -> u32 {
        let helping = Helping(self);
        let count = self.work();
        drop(helping);
        count
    }

    /// Returns whether a helping thread has panicked.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    /// Waits until no other thread works on a piece.
    pub(crate) fn wait(&self, mut pause: impl FnMut(u32)) {
        let mut looks = 0;
        while self.helpers.load(Ordering::Acquire) > 0 {
            pause(looks);
            looks = looks.saturating_add(1);
        }
    }
}

/// Counts a thread at work; dropping it ends the count, also in a panic.
struct Helping<'s>(&'s Split);

impl Drop for Helping<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.store(true, Ordering::Relaxed);
        }
        self.0.helpers.fetch_sub(1, Ordering::Release);
    }
}
