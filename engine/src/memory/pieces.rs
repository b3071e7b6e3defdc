//! How pieces of memory are kept, and one after the other.

use super::{Segment, Segments};
use alloc::sync::Arc;

#[derive(Debug, Clone)]
pub(super) enum Pieces {
    One(*mut u8),
    /// Pieces of `piece` bytes whose begins are `stride` bytes apart; `skip` bytes of the first one are
    /// left out.
    Strided {
        first: *mut u8,
        piece: usize,
        stride: isize,
        skip: usize,
    },
    /// A list, the index of the first piece in use, and bytes of it to skip.
    Many(Arc<[Placed]>, usize, usize),
    /// A list that is there again and again. The range begins where it is `shift` bytes further than at
    /// first, and skips `skip` bytes of it.
    Tiled {
        tile: Arc<Tile>,
        shift: isize,
        skip: u64,
    },
}

/// A list that is there again and again, each time `stride` bytes further. In one place, so that it makes no
/// memory of other kinds longer.
#[derive(Debug)]
pub(super) struct Tile {
    pub(super) list: Arc<[Placed]>,
    /// Bytes in the list.
    pub(super) len: u64,
    pub(super) stride: isize,
}

// SAFETY: plain addresses, of which the maker of the segments has promised that any thread may use them.
unsafe impl Send for Tile {}
// SAFETY: as above.
unsafe impl Sync for Tile {}

/// A piece of a list. Lists may have a million of them, so places in them are found by bisection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) segment: Segment,
    /// Bytes of the list before this piece.
    pub(super) before: u64,
}

/// Pieces with their places, those without bytes left out, and how many bytes they have.
pub(super) fn placed(list: &[Segment]) -> (Arc<[Placed]>, u64) {
    let mut len = 0;
    let place = |&segment: &Segment| {
        let before = len;
        len += segment.len as u64;
        Placed { segment, before }
    };
    let list = list.iter().filter(|piece| piece.len > 0).map(place).collect();
    (list, len)
}

/// The piece of a list, and the byte of that piece, that is `offset` bytes behind the begin of piece `first`.
pub(super) fn found(list: &[Placed], first: usize, offset: u64) -> (usize, usize) {
    let at = list[first].before + offset;
    let index = first + list[first..].partition_point(|piece| piece.before <= at) - 1;
    (index, (at - list[index].before) as usize)
}

impl Segments {
    /// Whether it is in pieces, and these are shorter than `bytes` on the average: to look at each of them
    /// then costs more than to copy them.
    #[inline]
    pub fn is_finer_than(&self, bytes: u64) -> bool {
        let count = self.count() as u64;
        count > 1 && self.len() < count.saturating_mul(bytes)
    }
}

/// The pieces of a range.
pub(super) struct Iter<'a> {
    pub(super) pieces: &'a Pieces,
    pub(super) index: usize,
    /// Bytes of the next piece that are left out.
    pub(super) skip: usize,
    /// Where a list that is there again and again is now.
    pub(super) further: isize,
    pub(super) left: usize,
}

impl Iterator for Iter<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        if self.left == 0 {
            return None;
        }
        let whole = match self.pieces {
            Pieces::One(start) => Segment { start: *start, len: self.skip + self.left },
            Pieces::Strided { first, piece, stride, .. } => {
                let start = first.wrapping_offset((self.index as isize).wrapping_mul(*stride));
                Segment { start, len: *piece }
            }
            Pieces::Many(list, ..) => list.get(self.index)?.segment,
            Pieces::Tiled { tile, .. } => {
                let Segment { start, len } = tile.list[self.index].segment;
                Segment { start: start.wrapping_offset(self.further), len }
            }
        };
        let len = (whole.len - self.skip).min(self.left);
        let start = whole.start.wrapping_add(self.skip);
        (self.index, self.skip, self.left) = (self.index + 1, 0, self.left - len);
        if let Pieces::Tiled { tile, .. } = self.pieces
            && self.index == tile.list.len()
        {
            (self.index, self.further) = (0, self.further.wrapping_add(tile.stride));
        }
        Some(Segment { start, len })
    }
}
