//! Where everything of a link lies in its segment.
//!
//! The two sides are numbered: 0 opened the link and made the segment, 1 answered. Whatever one side writes
//! and the other polls has a cache line of its own.

use super::ring::{CONTENT, Cells};
use super::segment::Segment;
use super::shared::Topic;
use std::sync::atomic::AtomicU64;

/// Cells of each ring.
pub const CELLS: u64 = 256;
/// Bytes of each area for what does not fit into a cell.
pub const AREA: u32 = 256 << 10;
/// Chunks that are under way in one direction at once.
pub const CHUNKS: usize = 8;
/// Landings of one side that the other can write into.
pub const LANDINGS: usize = 64;

/// Says that this is a segment, and of which version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"nmadshm8");
/// Pieces of memory whose addresses and lengths lie in the segment, so that the peer needs no system call to
/// read them.
pub const LISTED: usize = 14;

const LINE: usize = 64;
const SIDES: usize = 512;
const SIDE: usize = 512;
const CLAIMS: usize = 4096;
const CLAIM: usize = 6 * LINE;
const BOARDS: usize = 16384;
const BOARD: usize = LANDINGS * ENTRY;
/// Four words about a landing, and its pieces.
const ENTRY: usize = 32 + LIST;
const LIST: usize = LISTED * 16;
const RINGS: usize = BOARDS + 2 * BOARD;
const RING: usize = CELLS as usize * LINE;
/// Not at the beginning of a page, where large buffers usually begin: copies from one place to another with
/// nearly the same offset in its page are slower, by a third between cores that are near to each other and by
/// more than half between cores that are not (measured at 160 to 256 KiB on Zen 5).
const OFFSET: usize = 2048 + LINE;
const AREAS: usize = RINGS + 2 * RING + OFFSET;

/// Bytes of a segment.
pub const LEN: usize = AREAS + 2 * AREA as usize;

/// One side of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The side that opened the link.
    Opened,
    /// The side that answered.
    Answered,
}

impl End {
    /// The other one.
    #[inline]
    pub fn other(self) -> End {
        match self {
            End::Opened => End::Answered,
            End::Answered => End::Opened,
        }
    }

    /// Whether this side copies the front of what both copy, and the other one the back: always the same, so
    /// that what goes to and fro stays in the cache of its core.
    pub fn has_front(self) -> bool {
        self == End::Opened
    }

    fn side(self, line: usize) -> usize {
        SIDES + self as usize * SIDE + line * LINE
    }

    /// Where [`MAGIC`] is.
    pub const fn magic() -> usize {
        0
    }

    /// Three words: the address of private memory of this side, and what is there.
    pub fn probe(self) -> usize {
        self.side(0)
    }

    /// Whether this side can access the other's memory: 1 yes, 2 no, 0 not known yet.
    pub fn can(self) -> usize {
        self.side(1)
    }

    /// Whether this side sleeps.
    pub fn asleep(self) -> usize {
        self.side(2)
    }

    /// Whether this side, when it goes to sleep, makes a barrier for the other one too; on the line of the
    /// word that tells that it sleeps, which is looked at at the same time.
    pub fn fences(self) -> usize {
        self.asleep() + 8
    }

    /// How many cells of the other side's ring this side has taken.
    pub fn taken(self) -> usize {
        self.side(3)
    }

    /// What this side has answered last.
    pub fn answer(self, topic: Topic) -> usize {
        self.taken() + 8 + topic as usize * 8
    }

    /// The key of the landing into which this side pushes, zero for none.
    pub fn aim(self) -> usize {
        self.side(4)
    }

    /// What this side lends.
    pub fn loan(self) -> usize {
        self.side(5)
    }

    /// The part of it that this side may copy, by its peer: the address there, and from where to where in the
    /// whole.
    pub fn part(self) -> [usize; 3] {
        [1, 2, 3].map(|word| self.loan() + 8 * word)
    }

    /// Who copies what of this side's chunk number `place`.
    pub fn claim(self, place: usize) -> usize {
        CLAIMS + (self as usize * CHUNKS + place) * CLAIM
    }

    /// The key of the landing into which this side's chunk number `place` goes, told by the peer: only he
    /// knew where. On the line of the claim, which he takes next.
    pub fn goes_to(self, place: usize) -> usize {
        self.claim(place) + 8
    }

    /// Where the pieces of this side's chunk number `place` are, if they are few.
    pub fn pieces(self, place: usize) -> usize {
        self.claim(place) + 2 * LINE
    }

    /// A landing of this side: key, address, pieces, bytes, and the pieces if they are few.
    pub fn landing(self, place: usize) -> usize {
        BOARDS + self as usize * BOARD + place * ENTRY
    }

    /// A range of this side's area.
    pub fn area(self, start: u32) -> usize {
        AREAS + self as usize * AREA as usize + start as usize
    }

    /// The ring that this side writes.
    pub fn ring(self) -> Ring {
        Ring { cells: RINGS + self as usize * RING, taken: self.other().taken() }
    }
}

/// Where a ring lies.
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

/// A ring in its segment.
#[derive(Debug, Clone, Copy)]
pub struct RingOf<'a>(pub &'a Segment, pub Ring);

impl<'a> RingOf<'a> {
    /// Writes content from its beginning on: words, and bytes behind them.
    #[inline]
    pub fn put_words<const N: usize>(&self, cell: u64, words: &[u64; N], bytes: &[u8]) {
        debug_assert!(size_of_val(words) + bytes.len() <= CONTENT, "inside the cell");
        self.0.put_words(self.1.cell(cell) + 8, words, bytes);
    }

    /// Fetches a cell that is read soon.
    #[inline]
    pub fn fetch(&self, cell: u64) {
        self.0.fetch(self.1.cell(cell), 1);
    }

    /// The first bytes of a cell's content, to be read in place.
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
            let lines = [end.probe(), end.can(), end.asleep(), end.taken(), end.aim(), end.loan()];
            ranges.extend(lines.map(|at| (at, LINE)));
            ranges.extend((0..CHUNKS).map(|place| (end.claim(place), CLAIM)));
            ranges.extend((0..LANDINGS).map(|place| (end.landing(place), ENTRY)));
            ranges.extend((0..CELLS).map(|cell| (end.ring().cell(cell), LINE)));
            ranges.push((end.area(0), AREA as usize));
        }
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(ranges.iter().all(|(at, _)| at % LINE == 0), "each begins on a line");
        let &(at, len) = ranges.last().expect("some");
        assert_eq!(at + len, LEN);
    }
}
