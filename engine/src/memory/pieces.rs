//! Representations of the pieces of segments, and iteration over them.

use super::{Segment, Segments};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

#[derive(Debug, Clone)]
pub(super) enum Pieces {
    One(*mut u8),
    /// Pieces of `piece` bytes, `stride` bytes from one start to the next; `skip` bytes of the first one
    /// are left out.
    Strided {
        first: *mut u8,
        piece: usize,
        stride: isize,
        skip: usize,
    },
    /// A list, the index of the first piece in use, and bytes of it to skip.
    Many(Arc<[Placed]>, usize, usize),
    /// A repeated list. The range begins in the repetition at `base`, and skips `skip` bytes of it.
    Tiled {
        tile: Arc<Tile>,
        base: *mut u8,
        skip: u64,
    },
}

/// Where the pieces of an element lie, relative to its address, and how far apart elements are. Made once and
/// shared by all messages of a datatype.
#[derive(Debug)]
pub struct Tile {
    pub(super) list: Box<[Inside]>,
    /// Bytes of one repetition, and of its longest piece.
    pub(super) len: u64,
    longest: usize,
    pub(super) stride: isize,
}

/// A piece of an element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inside {
    offset: isize,
    pub(super) len: usize,
    /// Bytes of the element before this piece.
    pub(super) before: u64,
}

impl Inside {
    /// Returns the piece of the element at this address.
    #[inline]
    pub(super) fn of(self, base: *mut u8) -> Segment {
        Segment { start: base.wrapping_offset(self.offset), len: self.len }
    }
}

impl Tile {
    /// Makes the tile of pieces, each with its displacement and length.
    pub fn new(pieces: impl Iterator<Item = (isize, usize)>, stride: isize) -> Tile {
        let mut all = 0;
        let inside = |(offset, len): (isize, usize)| {
            let before = all;
            all += len as u64;
            Inside { offset, len, before }
        };
        let list: Box<[Inside]> = pieces.filter(|(_, len)| *len > 0).map(inside).collect();
        let longest = list.iter().map(|piece| piece.len).max().unwrap_or(0);
        Tile { list, len: all, longest, stride }
    }

    /// Returns the displacement of the first piece; `None`: there is none.
    pub fn first(&self) -> Option<isize> {
        self.list.first().map(|piece| piece.offset)
    }

    /// Returns the index of the piece, and the offset in it, `offset` bytes behind the start of the element.
    pub(super) fn found(&self, offset: u64) -> (usize, usize) {
        holder(&self.list, |piece| piece.before, offset)
    }
}

/// Returns the index of the piece that holds byte `at` of all, and its offset there; `before` gives the bytes
/// before a piece. Lists may have a million pieces, so they are searched by bisection.
#[inline]
fn holder<T>(list: &[T], before: impl Fn(&T) -> u64, at: u64) -> (usize, usize) {
    let index = list.partition_point(|piece| before(piece) <= at) - 1;
    (index, (at - before(&list[index])) as usize)
}

/// A piece of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) segment: Segment,
    /// Bytes of the list before this piece.
    pub(super) before: u64,
}

/// Returns the non-empty pieces with the number of bytes before each, and their total length.
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

/// Returns the index of the piece, and the offset in it, `offset` bytes behind the start of piece `first`.
pub(super) fn found(list: &[Placed], first: usize, offset: u64) -> (usize, usize) {
    let at = list[first].before + offset;
    let (index, inside) = holder(&list[first..], |piece| piece.before, at);
    (first + index, inside)
}

impl Segments {
    /// Returns the bytes outside of these ranges (offset and length), which ascend and are disjoint.
    pub fn without(&self, ranges: impl Iterator<Item = (u64, u64)>) -> Segments {
        let (mut list, mut at) = (Vec::new(), 0u64);
        for (offset, len) in ranges {
            list.extend(self.slice(at, offset.saturating_sub(at)).iter());
            at = offset.saturating_add(len);
        }
        list.extend(self.slice(at, u64::MAX).iter());
        Segments::of_own(&list)
    }

    /// Returns the bytes in these ranges (offset and length), in this order.
    pub fn only(&self, ranges: impl Iterator<Item = (u64, u64)>) -> Segments {
        let mut list = Vec::new();
        ranges.for_each(|(offset, len)| list.extend(self.slice(offset, len).iter()));
        Segments::of_own(&list)
    }

    /// Makes segments of pieces of other segments.
    fn of_own(list: &[Segment]) -> Segments {
        if list.is_empty() {
            return Segments::empty();
        }
        // SAFETY: the maker of the other segments has made the same promise for all of their memory.
        unsafe { Segments::from_list(list) }
    }

    /// Whether it is one piece, or pieces of one length.
    #[inline]
    pub fn is_even(&self) -> bool {
        matches!(self.pieces, Pieces::One(_) | Pieces::Strided { .. })
    }

    /// Whether it consists of pieces that are shorter than `bytes` on average: handling each of them then
    /// costs more than copying them.
    #[inline]
    pub fn is_finer_than(&self, bytes: u64) -> bool {
        let count = self.count() as u64;
        count > 1 && self.len() < count.saturating_mul(bytes)
    }

    /// Whether it is known to consist of pieces that are all shorter than `bytes`; false for lists, whose
    /// pieces are not looked at.
    #[inline]
    pub fn is_all_finer_than(&self, bytes: u64) -> bool {
        let longest = match &self.pieces {
            Pieces::One(_) | Pieces::Many(..) => return false,
            Pieces::Strided { piece, .. } => *piece,
            Pieces::Tiled { tile, .. } => tile.longest,
        };
        (longest as u64) < bytes
    }
}

/// Iterator over the pieces of a range.
pub(super) struct Iter<'a> {
    pub(super) pieces: &'a Pieces,
    pub(super) index: usize,
    /// Bytes of the next piece to leave out.
    pub(super) skip: usize,
    /// Address of the current repetition of a repeated list.
    pub(super) base: *mut u8,
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
            Pieces::Tiled { tile, .. } => tile.list[self.index].of(self.base),
        };
        let len = (whole.len - self.skip).min(self.left);
        let start = whole.start.wrapping_add(self.skip);
        (self.index, self.skip, self.left) = (self.index + 1, 0, self.left - len);
        if let Pieces::Tiled { tile, .. } = self.pieces
            && self.index == tile.list.len()
        {
            (self.index, self.base) = (0, self.base.wrapping_offset(tile.stride));
        }
        Some(Segment { start, len })
    }

    /// The same as calling [`Iterator::next`] again and again, with the representation chosen once: a type
    /// may have a million pieces of 8 bytes.
    #[inline]
    fn fold<B, F: FnMut(B, Segment) -> B>(mut self, init: B, mut each: F) -> B {
        let mut all = init;
        // The first piece may be the rest of one.
        let Some(first) = self.next() else { return all };
        all = each(all, first);
        match self.pieces {
            Pieces::Strided { first, piece, stride, .. } => {
                let from = first.wrapping_offset((self.index as isize).wrapping_mul(*stride));
                let (count, rest) = (self.left / *piece, self.left % *piece);
                let whole = Row { start: from, stride: *stride, count };
                // With a constant length the copy of a piece is one instruction or two.
                all = match *piece {
                    4 => whole.fold(4, all, &mut each),
                    8 => whole.fold(8, all, &mut each),
                    16 => whole.fold(16, all, &mut each),
                    len => whole.fold(len, all, &mut each),
                };
                let start = from.wrapping_offset((count as isize).wrapping_mul(*stride));
                if rest > 0 { each(all, Segment { start, len: rest }) } else { all }
            }
            Pieces::Tiled { tile, .. } => {
                while self.left > 0 {
                    for piece in &tile.list[self.index..] {
                        let Segment { start, len } = piece.of(self.base);
                        let len = len.min(self.left);
                        if len == 0 {
                            return all;
                        }
                        self.left -= len;
                        all = each(all, Segment { start, len });
                    }
                    (self.index, self.base) = (0, self.base.wrapping_offset(tile.stride));
                }
                all
            }
            Pieces::One(_) | Pieces::Many(..) => {
                for piece in self {
                    all = each(all, piece);
                }
                all
            }
        }
    }
}

/// Pieces at equal distances.
struct Row {
    start: *mut u8,
    stride: isize,
    count: usize,
}

impl Row {
    #[inline(always)]
    fn fold<B>(&self, len: usize, init: B, each: &mut impl FnMut(B, Segment) -> B) -> B {
        let (mut all, mut start) = (init, self.start);
        for _ in 0..self.count {
            all = each(all, Segment { start, len });
            start = start.wrapping_offset(self.stride);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::bytes;
    use alloc::vec;
    use proptest::collection::vec as list_of;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_and_what_is_outside_of_them_are_all_bytes(
            (piece, gap, count) in (1..20_usize, 0..5_usize, 1..9_usize),
            steps in list_of((0..30_u64, 1..30_u64), 0..6),
        ) {
            let stride = piece + gap;
            let mut memory: Vec<u8> = (0..=stride * count).map(|i| i as u8).collect();
            // SAFETY: the memory has all pieces, and outlives the test.
            let whole =
                unsafe { Segments::from_strided(memory.as_mut_ptr(), piece, stride as isize, count) };
            let mut end = 0;
            let ranges: Vec<(u64, u64)> = steps
                .into_iter()
                .map(|(before, len)| {
                    let offset = end + before;
                    end = offset + len;
                    (offset, len)
                })
                .collect();
            let all = bytes(&whole);
            let has = |at: u64, &(offset, len): &(u64, u64)| (offset..offset + len).contains(&at);
            let is_in = |at: &usize| ranges.iter().any(|range| has(*at as u64, range));
            let of = |inside: bool| -> Vec<u8> {
                (0..all.len()).filter(|at| is_in(at) == inside).map(|at| all[at]).collect()
            };
            let (only, rest) = (whole.only(ranges.iter().copied()), whole.without(ranges.iter().copied()));
            prop_assert_eq!((bytes(&only), only.len()), (of(true), of(true).len() as u64));
            prop_assert_eq!((bytes(&rest), rest.len()), (of(false), of(false).len() as u64));
        }
    }

    #[test]
    fn what_is_left_of_all_is_empty_and_one_piece_has_an_address() {
        let mut memory = vec![7u8; 100];
        // SAFETY: the memory outlives the test.
        let whole = unsafe { Segments::from_raw(memory.as_mut_ptr(), 100) };
        assert!(whole.without([(0, 100)].into_iter()).is_empty() && whole.only([].into_iter()).is_empty());
        assert!(whole.without([(0, 64)].into_iter()).address().is_some());
        assert!(whole.without([(10, 64)].into_iter()).address().is_none());
        assert!(whole.is_even() && !whole.without([(10, 64)].into_iter()).is_even());
    }
}
