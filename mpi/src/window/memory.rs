//! Memory of windows that the ranks of a node have in common. All of the `unsafe` code of windows is here.

use newmadeleine::{SharedMemory, huge};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Memory that all ranks of a node see.
pub(super) struct Common(SharedMemory);

// SAFETY: its words are atomic; its other bytes are windows, about which the program has promised not to
// access them in conflict.
unsafe impl Sync for Common {}

impl Common {
    /// Of huge pages from `huge` on, if there are to be some.
    pub(super) fn new(memory: SharedMemory, len: usize, huge: Option<usize>) -> Arc<Common> {
        if let Some(from) = huge {
            huge::ask(memory.start().wrapping_add(from), len - from);
        }
        Arc::new(Common(memory))
    }

    /// The words from an offset on that is a multiple of eight.
    #[inline]
    pub(super) fn words<const COUNT: usize>(&self, offset: usize) -> &[AtomicU64; COUNT] {
        self.0.words(offset)
    }

    /// Where its first byte is in this process.
    pub(super) fn start(&self) -> *mut u8 {
        self.0.start()
    }
}
