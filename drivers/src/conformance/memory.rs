//! User memory for tests, with a pattern that identifies each byte's origin. The only `unsafe` code here.

use nmad_engine::memory::{Segment, Segments};
use rustix::mm::{self, MapFlags, ProtFlags};
use std::ops::Range;
use std::sync::OnceLock;

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

    /// Memory with the bytes of the pattern `seed`, which depend on their offset.
    pub fn pattern(len: usize, seed: u64) -> Self {
        let mut memory = Memory::zeroed(len);
        memory.fill(seed);
        memory
    }

    /// Fills the memory with the pattern of `seed`.
    pub fn fill(&mut self, seed: u64) {
        write_pattern(self.bytes_mut(), seed);
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

/// Bytes after which a pattern repeats itself, but for the number of the repetition in its first bytes. It
/// is prime, so that no driver cuts data into parts of this length.
const PERIOD: usize = 65_521;
const FACTOR: u64 = 0xff51_afd7_ed55_8ccd;

/// Writes the pattern `seed`. Tests write and compare some hundred MB, mostly without optimisation, so what
/// is the same in all patterns is computed once.
pub fn write_pattern(into: &mut [u8], seed: u64) {
    static TWO_PERIODS: OnceLock<Vec<u8>> = OnceLock::new();
    let byte = |at: usize| ((at as u64 + 1).wrapping_mul(FACTOR) >> 32) as u8;
    let two_periods = TWO_PERIODS.get_or_init(|| (0..2 * PERIOD).map(|at| byte(at % PERIOD)).collect());
    // Each seed begins at another place.
    let start = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) % PERIOD as u64) as usize;
    for (number, part) in into.chunks_mut(PERIOD).enumerate() {
        part.copy_from_slice(&two_periods[start..][..part.len()]);
        let number = (number as u64).wrapping_mul(FACTOR).to_ne_bytes();
        part.iter_mut().zip(number).for_each(|(byte, number)| *byte ^= number);
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let bytes = std::ptr::slice_from_raw_parts_mut(self.start, self.len);
        // SAFETY: it came from a box of this length.
        drop(unsafe { Box::from_raw(bytes) });
    }
}
