//! Buffers of equal length in one piece of memory that is registered once: messages leave from them and
//! arrive in them.
//!
//! A slot is free, filled, or with the adapter. The rail reads or writes a slot only while it has it, which
//! is what makes the references here sound: a slot is taken by [`Slots::take`] or by its completion, and
//! given to the adapter by posting it.

use super::adapter::{Adapter, Purpose};
use nmad_engine::memory::Segment;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Bytes of a slot: the longest packet, and what goes before it.
pub(crate) const SLOT: usize = 16 << 10;
/// Bytes of a page, for the alignment.
const PAGE: usize = 4096;

/// The buffers.
pub(crate) struct Slots<R> {
    // Before the memory, so that the registration ends first.
    region: R,
    memory: Memory,
    free: Vec<u32>,
    /// For each slot the endpoint on which it was posted, if it was.
    posted: Vec<Option<u32>>,
}

struct Memory {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: it is the only owner of its memory.
unsafe impl Send for Memory {}

impl Memory {
    fn new(len: usize) -> Memory {
        let layout = Layout::from_size_align(len.max(PAGE), PAGE).expect("a page is a power of two");
        // SAFETY: the length is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Memory { start, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and nobody uses it any more.
        unsafe { dealloc(self.start, self.layout) };
    }
}

impl<R> Slots<R> {
    /// Buffers in this number, registered with the adapter.
    ///
    /// # Errors
    /// The system does not let this process register that much.
    pub(crate) fn new<A: Adapter<Region = R>>(adapter: &mut A, count: u32) -> Result<Self, String> {
        let memory = Memory::new(count as usize * SLOT);
        let all = Segment { start: memory.start, len: count as usize * SLOT };
        let region = adapter.register(all, Purpose::Messages)?;
        let posted = (0..count).map(|_| None).collect();
        Ok(Slots { region, memory, free: (0..count).rev().collect(), posted })
    }

    /// The registration.
    pub(crate) fn region(&self) -> &R {
        &self.region
    }

    /// How many are free.
    pub(crate) fn count_free(&self) -> usize {
        self.free.len()
    }

    /// Takes a free slot.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives a slot back.
    pub(crate) fn free(&mut self, slot: u32) {
        self.posted[slot as usize] = None;
        self.free.push(slot);
    }

    /// The slot is with the adapter, on this endpoint.
    pub(crate) fn posted(&mut self, slot: u32, endpoint: u32) {
        self.posted[slot as usize] = Some(endpoint);
    }

    /// The adapter has finished with a slot; one that was given back with its endpoint is skipped.
    pub(crate) fn completed(&mut self, slot: u32) {
        if self.posted.get(slot as usize).is_some_and(Option::is_some) {
            self.free(slot);
        }
    }

    /// Whether none is taken.
    pub(crate) fn are_all_free(&self) -> bool {
        self.free.len() == self.posted.len()
    }

    /// Gives back all slots of an endpoint that has ended.
    pub(crate) fn reclaim(&mut self, endpoint: u32) {
        for slot in 0..self.posted.len() {
            if self.posted[slot] == Some(endpoint) {
                self.free(slot as u32);
            }
        }
    }

    /// The first `len` bytes of a slot, for the adapter.
    pub(crate) fn segment(&self, slot: u32, len: usize) -> Segment {
        debug_assert!(len <= SLOT && (slot as usize) < self.posted.len());
        Segment { start: self.memory.start.wrapping_add(slot as usize * SLOT), len }
    }

    /// The bytes of a slot that was taken, to be filled.
    pub(crate) fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        let Segment { start, len } = self.segment(slot, SLOT);
        // SAFETY: inside the memory; the slot was taken, so the adapter does not use it, and `self` is
        // borrowed.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// The bytes that have arrived in a slot, and its segment.
    pub(crate) fn bytes(&self, slot: u32, len: usize) -> &[u8] {
        let Segment { start, len } = self.segment(slot, len.min(SLOT));
        // SAFETY: inside the memory; the adapter has finished with the slot, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}
