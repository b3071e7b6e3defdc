//! Layout of the segment of a link.
//!
//! The two sides are numbered: 0 opened the link and created the segment, 1 answered. Each word that one
//! side writes and the other polls has a cache line of its own.

use super::ring::{CONTENT, Cells};
use crate::node::Segment;
use std::sync::atomic::AtomicU64;

/// Cells of each ring, 16 KiB: four windows of 64 short messages. EPYC (2 virtual cores): with half,
/// streams of 256 B take 1.3 times as long; twice is within the spread.
pub const CELLS: u64 = 256;
/// Bytes of each bounce buffer, and the longest message that is pushed: both buffers of a link fit into the
/// cache of a core. EPYC (2 virtual cores): with half, 256 KiB take 1.4 times as long; with twice, 512 KiB
/// take 0.8, and shorter messages are within the spread.
pub const BOUNCE: u32 = 256 << 10;
/// Longest packet in bytes: 32 KiB of data and its headers. EPYC (2 virtual cores): with 20 KiB, messages
/// of 32,000 B take 1.6 times as long; with 68 KiB, those of 40 to 64 KiB take 0.8, and 32,000 B 1.1.
pub const PACKET: usize = 36 << 10;
/// Longest message that is pushed: the size of the bounce buffer. For longer messages it is faster to wait
/// until the receiver has published its buffer.
///
/// When oversubscribed, messages that could be copied once are not pushed: a message often arrives while
/// its receiver does not run, so before its receive is posted, and then needs another copy from temporary
/// memory (4 ranks on 2 cores of a Xeon, all to all: 128 KiB in 130 us instead of 225, 64 KiB in 72 instead
/// of 110).
pub const PUSH: u64 = BOUNCE as u64;
/// Chunks under way in one direction at once; more than the engine posts.
pub const CHUNKS: usize = 8;
/// Receive regions that one side can publish for writing; data of regions without an entry is pulled.
pub const REGIONS: usize = 64;
/// No more bytes of a chunk go through bounce buffers ([`End::bounced`]).
pub const CUT: u64 = 1 << 63;

/// Identifies a segment and its version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"nmadshma");
const LINE: usize = 64;
const SIDES: usize = 512;
const SIDE: usize = 512;
const CLAIMS: usize = 4096;
const CLAIM: usize = LINE;
const TABLES: usize = 16384;
const TABLE: usize = REGIONS * ENTRY;
/// Key, address, number of pieces and bytes of a region.
const ENTRY: usize = LINE;
const RINGS: usize = TABLES + 2 * TABLE;
const RING: usize = CELLS as usize * LINE;
/// Offset of bounce buffers within a page. Large user buffers usually begin at the start of a page, and
/// copies between addresses with nearly the same offset in their pages are slower, by a third between near
/// cores and by more than half between far ones (160 to 256 KiB, Zen 5).
const OFFSET: usize = 2048 + LINE;
const BOUNCES: usize = RINGS + 2 * RING + OFFSET;

/// Size of a segment in bytes.
pub const LEN: usize = BOUNCES + 2 * BOUNCE as usize;

/// One side of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The side that opened the link.
    Opened,
    /// The side that answered.
    Answered,
}

impl End {
    #[inline]
    pub fn other(self) -> End {
        match self {
            End::Opened => End::Answered,
            End::Answered => End::Opened,
        }
    }

    /// Returns whether this side copies the front of a region that both sides copy, and the other one the
    /// back. This never changes, so that a buffer that is sent back and forth stays in the cache of its
    /// core.
    pub fn has_front(self) -> bool {
        self == End::Opened
    }

    fn side(self, line: usize) -> usize {
        SIDES + self as usize * SIDE + line * LINE
    }

    /// Offset of [`MAGIC`].
    pub const fn magic() -> usize {
        0
    }

    /// Offset of four words: the address of a mark in the memory of this side, the mark (two), and the
    /// cache of its core.
    pub fn probe(self) -> usize {
        self.side(0)
    }

    /// Offset of the word that says whether this side can access the other's memory: 1 yes, 2 no, 0 not
    /// known yet.
    pub fn can(self) -> usize {
        self.side(1)
    }

    /// Offset of the sleep flag of this side.
    pub fn asleep(self) -> usize {
        self.side(2)
    }

    /// Offset of the flag that this side, when it goes to sleep, executes a fence for the other side too
    /// (membarrier). On the cache line of the sleep flag, because both are read at the same time.
    pub fn fences(self) -> usize {
        self.asleep() + 8
    }

    /// Offset of the number of cells that this side has consumed from the other side's ring.
    pub fn taken(self) -> usize {
        self.side(3)
    }

    /// Offset of the last answer of this side.
    pub fn answer(self) -> usize {
        self.taken() + 8
    }

    /// Offset of the word that is nonzero once this side has closed the link; data that the peer has read
    /// from this side's memory since then is invalid.
    pub fn closed(self) -> usize {
        self.side(5)
    }

    /// Offset of the claim word of this side's chunk number `place`: which side copies which part.
    pub fn claim(self, place: usize) -> usize {
        CLAIMS + (self as usize * CHUNKS + place % CHUNKS) * CLAIM
    }

    /// Offset of the key of the region into which this side may push its chunk number `place`; zero: not
    /// known. The peer writes it if only the peer knows the region. On the line of the claim word, which is
    /// accessed next.
    pub fn goes_to(self, place: usize) -> usize {
        self.claim(place) + 8
    }

    /// Offset of the number of bytes of this side's chunk number `place` that went through bounce buffers,
    /// with [`CUT`].
    pub fn bounced(self, place: usize) -> usize {
        self.claim(place) + 16
    }

    /// Offset of an entry for a receive region of this side: key, address, pieces, bytes.
    pub fn region(self, place: usize) -> usize {
        TABLES + self as usize * TABLE + place * ENTRY
    }

    /// Offset of a range of this side's bounce buffer.
    pub fn bounce(self, start: u32) -> usize {
        BOUNCES + self as usize * BOUNCE as usize + start as usize
    }

    /// The ring that this side writes.
    pub fn ring(self) -> Ring {
        Ring { cells: RINGS + self as usize * RING, taken: self.other().taken() }
    }
}

/// Position of a ring in the segment.
#[derive(Debug, Clone, Copy)]
pub struct Ring {
    cells: usize,
    taken: usize,
}

impl Ring {
    #[inline]
    fn cell(self, cell: u64) -> usize {
        self.cells + (cell % CELLS) as usize * LINE
    }
}

/// A ring together with its segment.
#[derive(Debug, Clone, Copy)]
pub struct RingOf<'a>(pub &'a Segment, pub Ring);

impl<'a> RingOf<'a> {
    /// Writes words and then bytes to the beginning of a cell's content.
    #[inline]
    pub fn put_words<const N: usize>(&self, cell: u64, words: &[u64; N], bytes: &[u8]) {
        debug_assert!(size_of_val(words) + bytes.len() <= CONTENT, "inside the cell");
        self.0.put_words(self.1.cell(cell) + 8, words, bytes);
    }

    /// Prefetches a cell that is read soon.
    #[inline]
    pub fn fetch(&self, cell: u64) {
        self.0.fetch(self.1.cell(cell));
    }

    /// The first bytes of a cell's content, without copying them.
    #[inline]
    pub fn bytes(&self, cell: u64, len: usize) -> &'a [u8] {
        self.0.bytes(self.1.cell(cell) + 8, len.min(CONTENT))
    }
}

impl Cells for RingOf<'_> {
    type Word = AtomicU64;

    #[inline]
    fn count(&self) -> u64 {
        CELLS
    }

    #[inline]
    fn word(&self, cell: u64) -> &AtomicU64 {
        self.0.word(self.1.cell(cell))
    }

    #[inline]
    fn put(&self, cell: u64, at: usize, part: &[u8]) {
        debug_assert!(at + part.len() <= CONTENT, "inside the cell");
        self.0.put(self.1.cell(cell) + 8 + at, part);
    }

    #[inline]
    fn get(&self, cell: u64, content: &mut [u8; CONTENT]) {
        self.0.get(self.1.cell(cell) + 8, content);
    }

    #[inline]
    fn expect(&self, cell: u64) {
        self.0.expect(self.1.cell(cell));
    }

    #[inline]
    fn taken(&self) -> &AtomicU64 {
        self.0.word(self.1.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        let mut ranges = vec![(End::magic(), LINE)];
        for end in [End::Opened, End::Answered] {
            let lines = [end.probe(), end.can(), end.asleep(), end.taken(), end.closed()];
            ranges.extend(lines.map(|at| (at, LINE)));
            ranges.extend((0..CHUNKS).map(|place| (end.claim(place), CLAIM)));
            ranges.extend((0..REGIONS).map(|place| (end.region(place), ENTRY)));
            ranges.extend((0..CELLS).map(|cell| (end.ring().cell(cell), LINE)));
            ranges.push((end.bounce(0), BOUNCE as usize));
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(ranges.iter().all(|(at, _)| at % LINE == 0), "each begins on a line");
        let &(at, len) = ranges.last().expect("some");
        assert_eq!(at + len, LEN);
    }
}
