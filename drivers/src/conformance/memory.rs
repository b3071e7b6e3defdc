//! User memory for tests, with a pattern that identifies each byte's origin. The only `unsafe` code here.

use nmad_engine::memory::{Segment, Segments};
use rustix::mm::{self, MapFlags, ProtFlags};
use std::ops::Range;

/// Memory that is freed when this is dropped, even if segments of it still exist.
#[derive(Debug)]
pub struct Memory {
    start: *mut u8,
    len: usize,
}

impl Memory {
    /// Memory of zeroes.
    pub fn zeroed(len: usize) -> Self {
        let start = Box::into_raw(vec![0u8; len].into_boxed_slice()).cast();
        Memory { start, len }
    }

    /// Memory with bytes that depend on their offset and on `seed`.
    pub fn pattern(len: usize, seed: u64) -> Self {
        let mut memory = Memory::zeroed(len);
        memory.fill(seed);
        memory
    }

    /// Fills the memory with the pattern of `seed`.
    pub fn fill(&mut self, seed: u64) {
        self.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = pattern(at, seed));
    }

    /// Maps fresh pages over those that lie entirely in it; their bytes are zero.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn map_anew(&mut self) {
        const PAGE: usize = 4096;
        let start = self.start.wrapping_add(self.start.addr().wrapping_neg() % PAGE);
        let len = (self.start.addr() + self.len - start.addr()) / PAGE * PAGE;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
        // SAFETY: the pages belong to this memory alone, and `self` is borrowed.
        unsafe { mm::mmap_anonymous(start.cast(), len, access, flags) }.expect("the system gives memory");
    }

    /// The whole memory.
    pub fn segments(&self) -> Segments {
        // SAFETY: the memory lives as long as `self`; tests drop it after the rails.
        unsafe { Segments::from_raw(self.start, self.len) }
    }

    /// Some ranges of the memory, in this order.
    ///
    /// # Panics
    /// If a range is outside.
    pub fn pieces(&self, ranges: &[Range<usize>]) -> Segments {
        assert!(ranges.iter().all(|r| r.start <= r.end && r.end <= self.len), "pieces inside the memory");
        let piece = |r: &Range<usize>| Segment { start: self.start.wrapping_add(r.start), len: r.len() };
        let list: Vec<Segment> = ranges.iter().map(piece).collect();
        // SAFETY: the memory lives as long as `self`, and every range was checked to be inside.
        unsafe { Segments::from_list(&list) }
    }

    /// The bytes for reading. No rail may be polled meanwhile.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated with this length.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// The bytes for writing. No rail may be polled meanwhile.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: allocated with this length; `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

/// The byte at offset `at` of the pattern `seed`.
pub fn pattern(at: usize, seed: u64) -> u8 {
    let mixed = (at as u64 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed >> 32) as u8
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = std::ptr::slice_from_raw_parts_mut(self.start, self.len);
        // SAFETY: it came from a box of this length.
        drop(unsafe { Box::from_raw(bytes) });
    }
}
