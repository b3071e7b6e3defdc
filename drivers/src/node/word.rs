//! Interface of a word that two processes share, for lock-free code.
//!
//! Lock-free code is written against this trait, so that the same code runs on shared memory and, in the
//! tests, on the words of loom, which tries every order in which two threads may see each other's stores.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A word of 64 bits that both sides read and write.
pub trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Stores `value` and returns the old value.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Clears the bits that are not in `mask`, and returns the old value.
    fn fetch_and(&self, mask: u64, order: Ordering) -> u64;
    /// Replaces `old` by `new`; false: the word had another value.
    fn replace(&self, old: u64, new: u64) -> bool;
    /// Orders all of this thread's stores before all of its later loads.
    fn full_fence();
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }

    #[inline]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::swap(self, value, order)
    }

    #[inline]
    fn fetch_and(&self, mask: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_and(self, mask, order)
    }

    #[inline]
    fn replace(&self, old: u64, new: u64) -> bool {
        self.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    #[inline]
    fn full_fence() {
        fence(Ordering::SeqCst);
    }
}
