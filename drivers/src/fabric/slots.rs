//! Buffers of equal length in one registered piece of memory, for sending and receiving messages.
//!
//! A slot is free, owned by the rail, or owned by the adapter. The rail accesses a slot only while it owns
//! it, which makes the references here sound: the rail acquires a slot by [`Slots::take`] or by its
//! completion, and passes it to the adapter by posting it.

use super::adapter::{Adapter, Purpose};
use nmad_engine::memory::Segment;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Bytes of a slot: the longest packet and its prefix.
pub(crate) const SLOT: usize = 16 << 10;
/// Page size, for the alignment.
const PAGE: usize = 4096;

/// The buffers.
pub(crate) struct Slots<R> {
    // Declared before the memory, so that the registration ends first.
    region: R,
    memory: Memory,
    free: Vec<u32>,
    /// The endpoint on which each slot is posted, if any.
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
        // SAFETY: it was allocated with this layout, and is not used any more.
        unsafe { dealloc(self.start, self.layout) };
    }
}

impl<R> Slots<R> {
    /// Allocates `count` buffers, and registers them with the adapter.
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

    /// Number of free slots.
    pub(crate) fn count_free(&self) -> usize {
        self.free.len()
    }

    /// Takes a free slot.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Frees a slot.
    pub(crate) fn free(&mut self, slot: u32) {
        self.posted[slot as usize] = None;
        self.free.push(slot);
    }

    /// Records that the slot was posted on this endpoint.
    pub(crate) fn posted(&mut self, slot: u32, endpoint: u32) {
        self.posted[slot as usize] = Some(endpoint);
    }

    /// Handles the completion of a slot; does nothing if the slot was reclaimed with its endpoint.
    pub(crate) fn completed(&mut self, slot: u32) {
        if self.posted.get(slot as usize).is_some_and(Option::is_some) {
            self.free(slot);
        }
    }

    /// Returns whether all slots are free.
    pub(crate) fn are_all_free(&self) -> bool {
        self.free.len() == self.posted.len()
    }

    /// Frees all slots of an endpoint that has ended.
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

    /// The bytes of a slot that the rail owns, for writing.
    pub(crate) fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        let Segment { start, len } = self.segment(slot, SLOT);
        // SAFETY: inside the memory; the rail owns the slot, so the adapter does not use it, and `self` is
        // borrowed.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// The first `len` bytes that have arrived in a slot, which may be changed in place.
    pub(crate) fn received_mut(&mut self, slot: u32, len: usize) -> &mut [u8] {
        &mut self.bytes_mut(slot)[..len.min(SLOT)]
    }

    /// The first `len` bytes that have arrived in a slot.
    pub(crate) fn bytes(&self, slot: u32, len: usize) -> &[u8] {
        let Segment { start, len } = self.segment(slot, len.min(SLOT));
        // SAFETY: inside the memory; the adapter has finished with the slot, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}
