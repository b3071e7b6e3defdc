//! The slots of all ranks for one sequence of operations.
//!
//! A slot is used again after [`RING`] operations. By then all ranks must have seen it. Each rank publishes
//! the number of the last operation up to which it is done with all: in the line of each post, where ranks
//! that wait for the posts of all read it with them, and in a line of its own for ranks that need it earlier.

use newmadeleine::{Segments, SharedMemory};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes that a rank can post in one operation.
pub const POST_MAX: usize = SLOT - HEAD;

const SLOT: usize = 2048;
/// The number of the operation, and that of the last one up to which the rank is done with all. The data
/// behind it is aligned for any operand.
const HEAD: usize = 16;
const DONE: usize = 8;
/// Slots of a rank.
const RING: u64 = 4;
const LINE: usize = 64;

/// One rank's view of them.
#[derive(Debug)]
pub(super) struct Ring {
    /// Where they begin in the memory, which is given to each call.
    base: usize,
    pub(super) size: usize,
    pub(super) me: usize,
    /// Everybody is done with the operations up to this one.
    safe: u64,
}

impl Ring {
    /// Bytes of shared memory for `size` ranks.
    pub(super) const fn len(size: usize) -> usize {
        size * (RING as usize * SLOT + LINE)
    }

    /// The view of rank `me` of `size`, on memory that from `base` on was zero at first.
    pub(super) fn new(base: usize, size: usize, me: usize) -> Ring {
        Ring { base, size, me, safe: 0 }
    }

    /// Whether all ranks are done with what was in the slot of an operation.
    #[inline]
    pub(super) fn is_free(&mut self, memory: &SharedMemory, number: u64) -> bool {
        let last = number.saturating_sub(RING);
        self.safe >= last || self.ask_for(memory, last)
    }

    /// Whether all ranks say that they are done with this operation.
    fn ask_for(&mut self, memory: &SharedMemory, last: u64) -> bool {
        let done = |rank: usize| memory.word(self.end(rank)).load(Ordering::Acquire);
        self.safe = (0..self.size).map(done).min().unwrap_or(0).max(self.safe);
        self.safe >= last
    }

    /// Says that we are done with all operations up to this one.
    #[inline]
    pub(super) fn say_done(&self, memory: &SharedMemory, number: u64) {
        memory.word(self.end(self.me)).store(number, Ordering::Release);
    }

    /// Shows data of ours to all, and up to which operation we are done with all.
    #[inline]
    pub(super) fn post(&self, memory: &SharedMemory, number: u64, data: &Segments, done: u64) {
        let mut offset = 0;
        for piece in data.slices() {
            self.put(memory, number, offset, piece);
            offset += piece.len();
        }
        self.show(memory, number, done);
    }

    /// Writes a part of a post.
    #[inline]
    pub(super) fn put(&self, memory: &SharedMemory, number: u64, offset: usize, bytes: &[u8]) {
        memory.put(self.slot(self.me, number) + HEAD + offset, bytes);
    }

    /// Marks our slot as posted.
    #[inline]
    pub(super) fn show(&self, memory: &SharedMemory, number: u64, done: u64) {
        let slot = self.slot(self.me, number);
        memory.word(slot + DONE).store(done, Ordering::Relaxed);
        memory.word(slot).store(number, Ordering::Release);
    }

    /// Whether the post of a rank is there.
    #[inline]
    pub(super) fn is_there(&self, memory: &SharedMemory, rank: usize, number: u64) -> bool {
        memory.word(self.slot(rank, number)).load(Ordering::Acquire) == number
    }

    /// The posts of these ranks are there: if they are all, they say what everybody is done with.
    #[inline]
    pub(super) fn learn(&mut self, memory: &SharedMemory, number: u64, ranks: &Range<usize>) {
        if ranks.len() == self.size {
            let done = |rank: usize| memory.word(self.slot(rank, number) + DONE).load(Ordering::Relaxed);
            self.safe = (0..self.size).map(done).min().unwrap_or(0).max(self.safe);
        }
    }

    /// Bytes of the post of a rank.
    #[inline]
    pub(super) fn posted<'m>(
        &self,
        memory: &'m SharedMemory,
        rank: usize,
        number: u64,
        range: Range<usize>,
    ) -> &'m [u8] {
        memory.bytes(self.slot(rank, number) + HEAD + range.start, range.len())
    }

    #[inline]
    fn slot(&self, rank: usize, number: u64) -> usize {
        self.base + (rank * RING as usize + (number % RING) as usize) * SLOT
    }

    /// Where a rank says which operation it is done with.
    fn end(&self, rank: usize) -> usize {
        self.base + self.size * RING as usize * SLOT + rank * LINE
    }
}
