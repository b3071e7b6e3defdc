//! `ring`: cells of one cache line each in shared memory, from one producer to one consumer.
//!
//! - [`cell`]: what cells contain.
//! - [`write`], [`read`]: orders into the ring, and what the ring brings.
//! - [`rhythm`]: whether the next packet is expected to come alone.
//!
//! The first word of a cell tells that it is there (its tag says in which round of the ring it was written)
//! and what it is; the rest is its content. So a small packet moves one line from core to core and nothing
//! else: there is no index that both sides write. A packet of up to 336 B is a row of cells. Every cell has
//! its word at the same place and only there, so content is never taken for a word, and nothing has to be
//! cleared.
//!
//! How many cells the consumer has taken travels back in the words of the other direction's cells, and, where
//! there are none, in a word of its own ([`Consumer::tell`]). Only positions and words are here; memory is
//! behind [`Cells`], so that loom can check the same code (`tests/loom.rs`).

pub mod cell;
pub mod read;
pub mod rhythm;
pub mod write;

use crate::node::word::Word;
use nmad_engine::packet::Packet;
use std::sync::atomic::Ordering;

/// Bytes of content in one cell.
pub const CONTENT: usize = 56;

/// What a packet consists of.
pub trait Content {
    /// Calls `put` with each part in turn.
    fn each(&self, put: impl FnMut(&[u8]));
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
    /// There was nothing.
    Nothing,
    /// More of a chunk that is known.
    Parts,
    /// A packet or a chunk, which may want an answer before anything long is copied.
    News,
}

/// Where the cells of one ring lie.
pub trait Cells {
    type Word: Word;
    /// How many there are: a power of two, at most 2^16.
    fn count(&self) -> u64;
    fn word(&self, cell: u64) -> &Self::Word;
    /// Writes a part of the content; only the producer calls it, for a cell that the consumer does not read.
    fn put(&self, cell: u64, at: usize, part: &[u8]);
    /// Reads content; only the consumer calls it, for a cell that the producer does not write.
    fn get(&self, cell: u64, content: &mut [u8; CONTENT]);
    /// The producer will write this cell soon.
    fn expect(&self, cell: u64) {
        let _ = cell;
    }
    /// The word in which the consumer tells how many cells it has taken.
    fn taken(&self) -> &Self::Word;
}

/// The kind of a cell that goes on with what the one before it began.
pub const MORE: u8 = 0;

/// What a cell's word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What the cell is; below 16.
    pub kind: u8,
    /// A number that goes with it, below 2^20.
    pub value: u32,
    /// Cells of the other direction's ring that the sender of this one has taken, modulo 2^24.
    pub taken: u32,
}

/// A cell is fetched for writing this number of cells before it is written: its line is in the consumer's
/// cache. A producer of several cells in a row would wait for each line otherwise, since a locked
/// instruction, of which there is one between any two, waits for all earlier stores. Between far cores of Zen
/// 4 half of it costs windows of 256 B a factor of 2, none at all windows of 8 B 1.08; twice is within the
/// spread.
const AHEAD: u64 = 8;

const TAKEN_BITS: u32 = 24;
/// Values of a head are below this.
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

/// The tag of the round in which position `at` lies: not that of the round before, which the cell still
/// holds, and never zero, which fresh memory holds.
#[inline]
fn tag(at: u64, count: u64) -> u64 {
    (at / count) & 0x7fff | 0x8000
}

/// The writing end.
#[derive(Debug, Default)]
pub struct Producer {
    next: u64,
    /// Cells that the consumer is known to have taken.
    taken: u64,
}

impl Producer {
    /// Cells that may be written now, as far as is known.
    #[inline]
    pub fn room(&self, cells: &impl Cells) -> u64 {
        cells.count() - (self.next - self.taken)
    }

    /// The number of the cell that is written next.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Writes a cell. There must be room.
    #[inline]
    pub fn push<C: Cells>(&mut self, cells: &C, head: Head, content: &[u8]) {
        self.push_row(cells, head, 1, |cell, _| cells.put(cell, 0, content));
    }

    /// Writes a row of cells, which are one thing; `put` writes the content of each, given its number and its
    /// place in the row. There must be room for all.
    #[inline]
    pub fn push_row<C: Cells>(&mut self, cells: &C, head: Head, count: u64, mut put: impl FnMut(u64, usize)) {
        debug_assert!(self.room(cells) >= count);
        // The first one last: who sees that sees all of them.
        for place in (0..count).rev() {
            let (at, cell) = (self.next + place, (self.next + place) & (cells.count() - 1));
            put(cell, place as usize);
            let head = if place == 0 { head } else { Head { kind: MORE, value: 0, ..head } };
            cells.word(cell).store(head.encode(tag(at, cells.count())), Ordering::Release);
        }
        self.next += count;
        // Not one that the consumer has still to read.
        if self.room(cells) > AHEAD {
            for place in 0..count.min(AHEAD) {
                cells.expect((self.next + AHEAD - place) & (cells.count() - 1));
            }
        }
    }

    /// Learns from a head of the other direction how many cells were taken. False: an impossible number.
    #[inline]
    pub fn learn(&mut self, taken: u32) -> bool {
        let news = taken.wrapping_sub(self.taken as u32) & ((1 << TAKEN_BITS) - 1);
        // A head is older than what the word of its own has told meanwhile.
        if news >= 1 << (TAKEN_BITS - 1) {
            return true;
        }
        self.taken += u64::from(news);
        self.taken <= self.next
    }

    /// Looks at the word in which the consumer tells what it took. False: an impossible number.
    #[inline]
    pub fn ask<C: Cells>(&mut self, cells: &C) -> bool {
        self.learn(cells.taken().load(Ordering::Acquire) as u32 & ((1 << TAKEN_BITS) - 1))
    }

    /// Cells that the consumer is known to have taken.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

/// The reading end.
#[derive(Debug, Default)]
pub struct Consumer {
    next: u64,
    /// The number of cells in the word for the producer.
    told: u64,
}

impl Consumer {
    /// What the next cell says, if it is there.
    #[inline]
    pub fn peek<C: Cells>(&self, cells: &C) -> Option<Head> {
        self.peek_at(cells, 0)
    }

    #[inline]
    fn peek_at<C: Cells>(&self, cells: &C, place: u64) -> Option<Head> {
        let word = cells.word(self.cell(cells, place)).load(Ordering::Acquire);
        (word & 0xffff == tag(self.next + place, cells.count())).then(|| Head::decode(word))
    }

    /// Whether the cell that was peeked at begins a row of so many, as its producer says.
    #[inline]
    pub fn has_row<C: Cells>(&self, cells: &C, count: u64) -> bool {
        (1..count).all(|place| self.peek_at(cells, place).is_some_and(|head| head.kind == MORE))
    }

    /// The cell that was peeked at, or the one `place` places behind it.
    #[inline]
    pub fn cell<C: Cells>(&self, cells: &C, place: u64) -> u64 {
        (self.next + place) & (cells.count() - 1)
    }

    /// The content of the cell that was peeked at, or of one behind it in its row.
    #[inline]
    pub fn content<C: Cells>(&self, cells: &C, place: u64, content: &mut [u8; CONTENT]) {
        cells.get(self.cell(cells, place), content);
    }

    /// Takes the cell that was peeked at and the others of its row, `count` in all; the producer may write
    /// them again once it knows.
    #[inline]
    pub fn take(&mut self, count: u64) {
        self.next += count;
    }

    /// What heads of the other direction tell.
    #[inline]
    pub fn taken(&self) -> u32 {
        self.next as u32 & ((1 << TAKEN_BITS) - 1)
    }

    /// A head of the other direction that tells what was taken has left.
    #[inline]
    pub fn told(&mut self) {
        self.told = self.next;
    }

    /// Cells taken of which the producer does not know.
    #[inline]
    pub fn untold(&self) -> u64 {
        self.next - self.told
    }

    /// Tells the producer what was taken, in the word for it.
    #[inline]
    pub fn tell<C: Cells>(&mut self, cells: &C) {
        cells.taken().store(self.next, Ordering::Release);
        self.told = self.next;
    }
}
