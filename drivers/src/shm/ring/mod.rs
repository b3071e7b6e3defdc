//! `ring`: cells of one cache line each in shared memory, from one producer to one consumer.
//!
//! - [`cell`]: content of cells.
//! - [`write`]: writes orders into the ring; [`read`]: handles received cells.
//! - [`rhythm`]: predicts whether the next packet comes alone.
//! - [`aside`]: cells that are consumed before those that have to be handled first.
//!
//! The first word of a cell says that it was written (its tag is the round of the ring) and what it is; the
//! rest is its content. So a small packet moves one line from core to core and nothing else: there is no
//! index that both sides write. A packet of up to 336 B is a row of cells. Every cell has its word at the
//! same offset, and content is never stored there, so content is never taken for a word, and nothing has to
//! be cleared.
//!
//! The number of cells that the consumer has consumed travels back in the words of the other direction's
//! cells, and, if there are none, in a separate word ([`Consumer::report_taken`]). This module handles only
//! positions and words; memory is behind [`Cells`], so that loom can check the same code (`tests/loom.rs`).

pub mod aside;
pub mod cell;
pub mod read;
pub mod rhythm;
pub mod write;

use crate::node::word::Word;
use crate::shm::shape::Shape;
use nmad_engine::memory::Segments;
use nmad_engine::packet::Packet;
use std::sync::atomic::Ordering;

/// Bytes of content in one cell.
pub const CONTENT: usize = 56;

/// The bytes of a packet.
pub trait Content {
    /// Calls `put` with each part in turn.
    fn each(&self, put: impl FnMut(&[u8]));
    /// The shape of the data.
    fn shape(&self) -> Shape {
        Shape::Whole
    }
    /// The words before the data, and the data, if they are apart.
    fn head_and_data(&self) -> Option<(&[u64], &Segments)> {
        None
    }
}

impl Content for Packet {
    #[inline]
    fn each(&self, put: impl FnMut(&[u8])) {
        self.parts(put);
    }
}

impl Content for &[u8] {
    #[inline]
    fn each(&self, mut put: impl FnMut(&[u8])) {
        put(self);
    }
}

/// The kind of cells that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// No cells.
    Nothing,
    /// Parts of chunks that were announced before.
    Parts,
    /// A packet or a new chunk; the peer may wait for an answer, so nothing long is copied before it is
    /// handled.
    News,
}

/// The memory of one ring.
pub trait Cells {
    type Word: Word;
    /// Number of cells: a power of two, at most 2^16.
    fn count(&self) -> u64;
    fn word(&self, cell: u64) -> &Self::Word;
    /// Writes a part of the content; only the producer calls it, for a cell that the consumer does not
    /// read.
    fn put(&self, cell: u64, at: usize, part: &[u8]);
    /// Reads content; only the consumer calls it, for a cell that the producer does not write.
    fn get(&self, cell: u64, content: &mut [u8; CONTENT]);
    /// Prefetches a cell for writing.
    fn expect(&self, cell: u64) {
        let _ = cell;
    }
    /// The word in which the consumer publishes how many cells it has consumed.
    fn taken(&self) -> &Self::Word;
}

/// Kind of a cell that continues the row of the cell before it.
pub const MORE: u8 = 0;

/// The content of a cell's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The kind of the cell; below 16.
    pub kind: u8,
    /// A number whose meaning depends on the kind; below 2^20.
    pub value: u32,
    /// Cells of the other direction's ring that the sender of this one has consumed, modulo 2^24.
    pub taken: u32,
}

/// A cell is prefetched for writing this number of cells before it is written, because its line is in the
/// consumer's cache. Otherwise a producer of several cells in a row would wait for each line, since the
/// locked instruction between any two waits for all earlier stores. Between far cores of Zen 4, half of it
/// costs windows of 256 B a factor of 2, none at all windows of 8 B 1.08; twice is within the spread.
const AHEAD: u64 = 8;

const TAKEN_BITS: u32 = 24;
/// Upper bound (exclusive) of a head's value.
pub const VALUE_LIMIT: u32 = 1 << 20;

impl Head {
    fn encode(self, tag: u64) -> u64 {
        debug_assert!(self.kind < 16 && self.value < VALUE_LIMIT);
        tag | u64::from(self.kind) << 16 | u64::from(self.value) << 20 | u64::from(self.taken) << 40
    }

    fn decode(word: u64) -> Head {
        let value = (word >> 20) as u32 & (VALUE_LIMIT - 1);
        Head { kind: (word >> 16) as u8 & 15, value, taken: (word >> 40) as u32 }
    }
}

/// The tag of the round in which position `at` lies. It differs from that of the previous round, which the
/// cell still holds, and from zero, which fresh memory holds.
#[inline]
fn tag(at: u64, count: u64) -> u64 {
    (at / count) & 0x7fff | 0x8000
}

/// The writing end.
#[derive(Debug, Default)]
pub struct Producer {
    next: u64,
    /// Cells that the consumer is known to have consumed.
    taken: u64,
}

impl Producer {
    /// Cells that may be written now, as far as known.
    #[inline]
    pub fn room(&self, cells: &impl Cells) -> u64 {
        cells.count() - (self.next - self.taken)
    }

    /// The number of the cell that is written next.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Writes a cell, for which there must be room.
    #[inline]
    pub fn push<C: Cells>(&mut self, cells: &C, head: Head, content: &[u8]) {
        self.push_row(cells, head, 1, |cell, _| cells.put(cell, 0, content));
    }

    /// Writes a row of cells, which belong together; `put` writes the content of each, given its number and
    /// its index in the row. There must be room for all.
    #[inline]
    pub fn push_row<C: Cells>(&mut self, cells: &C, head: Head, count: u64, mut put: impl FnMut(u64, usize)) {
        debug_assert!(self.room(cells) >= count);
        // The first cell is written last, so that a consumer that sees it sees the whole row.
        for place in (0..count).rev() {
            let (at, cell) = (self.next + place, (self.next + place) & (cells.count() - 1));
            put(cell, place as usize);
            let head = if place == 0 { head } else { Head { kind: MORE, value: 0, ..head } };
            cells.word(cell).store(head.encode(tag(at, cells.count())), Ordering::Release);
        }
        self.next += count;
        // Only if the consumer has already consumed that cell.
        if self.room(cells) > AHEAD {
            for place in 0..count.min(AHEAD) {
                cells.expect((self.next + AHEAD - place) & (cells.count() - 1));
            }
        }
    }

    /// Takes the number of consumed cells from a head of the other direction. False: an impossible number.
    #[inline]
    pub fn learn(&mut self, taken: u32) -> bool {
        let news = taken.wrapping_sub(self.taken as u32) & ((1 << TAKEN_BITS) - 1);
        // The head is older than the value read from the separate word.
        if news >= 1 << (TAKEN_BITS - 1) {
            return true;
        }
        self.taken += u64::from(news);
        self.taken <= self.next
    }

    /// Reads the number of consumed cells from the consumer's separate word. False: an impossible number.
    #[inline]
    pub fn ask<C: Cells>(&mut self, cells: &C) -> bool {
        self.learn(cells.taken().load(Ordering::Acquire) as u32 & ((1 << TAKEN_BITS) - 1))
    }

    /// Cells that the consumer is known to have consumed.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

/// The reading end.
#[derive(Debug, Default)]
pub struct Consumer {
    next: u64,
    /// Number of consumed cells that was last published to the producer.
    reported: u64,
}

impl Consumer {
    /// Decodes the next cell's word, if the cell was written.
    #[inline]
    pub fn peek<C: Cells>(&self, cells: &C) -> Option<Head> {
        self.peek_at(cells, 0)
    }

    #[inline]
    fn peek_at<C: Cells>(&self, cells: &C, place: u64) -> Option<Head> {
        let word = cells.word(self.cell(cells, place)).load(Ordering::Acquire);
        (word & 0xffff == tag(self.next + place, cells.count())).then(|| Head::decode(word))
    }

    /// Returns whether the next cell begins a complete row of `count` cells.
    #[inline]
    pub fn has_row<C: Cells>(&self, cells: &C, count: u64) -> bool {
        (1..count).all(|place| self.peek_at(cells, place).is_some_and(|head| head.kind == MORE))
    }

    /// Number of the next cell, or of the one `place` places behind it.
    #[inline]
    pub fn cell<C: Cells>(&self, cells: &C, place: u64) -> u64 {
        (self.next + place) & (cells.count() - 1)
    }

    /// Reads the content of the next cell, or of the one `place` places behind it.
    #[inline]
    pub fn content<C: Cells>(&self, cells: &C, place: u64, content: &mut [u8; CONTENT]) {
        cells.get(self.cell(cells, place), content);
    }

    /// Consumes the next `count` cells; the producer may write them again once the number is published.
    #[inline]
    pub fn take(&mut self, count: u64) {
        self.next += count;
    }

    /// Number of consumed cells, for heads of the other direction.
    #[inline]
    pub fn taken(&self) -> u32 {
        self.next as u32 & ((1 << TAKEN_BITS) - 1)
    }

    /// Records that a head of the other direction has published the number.
    #[inline]
    pub fn taken_was_reported(&mut self) {
        self.reported = self.next;
    }

    /// Number of consumed cells that is not published yet.
    #[inline]
    pub fn unreported(&self) -> u64 {
        self.next - self.reported
    }

    /// Publishes the number of consumed cells in the separate word.
    #[inline]
    pub fn report_taken<C: Cells>(&mut self, cells: &C) {
        cells.taken().store(self.next, Ordering::Release);
        self.reported = self.next;
    }
}
