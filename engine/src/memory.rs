//! Segments: contiguous pieces of user memory that a message consists of. This folder contains all `unsafe`
//! code of the engine.
//!
//! A request borrows user memory while it runs, across threads and calls; no Rust lifetime expresses this
//! for an MPI or C caller. So the caller promises it once, when it makes segments ([`Segments::from_raw`],
//! [`Segments::from_list`]), and everything else in the engine is safe code.

mod buffer;
mod copying;
mod pieces;
pub mod together;

pub use buffer::Buffer;
pub(crate) use buffer::{Spare, UNIT};
pub use copying::{copy, copy_overlapping, copy_slice};

use alloc::sync::Arc;
use alloc::vec::Vec;
pub use pieces::Tile;
use pieces::{Iter, Pieces, found, placed};
use together::{Kind, LEAST, bytes_together};

/// A contiguous piece of user memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First byte.
    pub start: *mut u8,
    /// Length in bytes.
    pub len: usize,
}

/// User memory of one message: a range of pieces, in order. Cheap to clone and to slice.
#[derive(Debug, Clone)]
pub struct Segments {
    pieces: Pieces,
    len: u64,
}

// SAFETY: segments are plain addresses; their maker promised that the memory stays valid and is not used
// otherwise until the request is complete, from any thread.
unsafe impl Send for Segments {}
// SAFETY: as above; shared access to the addresses themselves is harmless.
unsafe impl Sync for Segments {}

impl Segments {
    /// Makes segments without memory.
    pub const fn empty() -> Self {
        Segments { pieces: Pieces::One(core::ptr::null_mut()), len: 0 }
    }

    /// Makes segments of one contiguous piece of `len` bytes at `start`.
    ///
    /// # Safety
    /// The memory must be readable (for a send), or writable and not read otherwise (for a receive), from
    /// any thread, until the request that uses these segments is complete.
    pub const unsafe fn from_raw(start: *mut u8, len: usize) -> Self {
        Segments { pieces: Pieces::One(start), len: len as u64 }
    }

    /// Makes segments of `count` pieces of `piece` bytes, the first at `start`, `stride` bytes from one
    /// start to the next, without allocating a list.
    ///
    /// # Safety
    /// The conditions of [`Segments::from_raw`] hold for every piece; receive pieces do not overlap.
    pub const unsafe fn from_strided(start: *mut u8, piece: usize, stride: isize, count: usize) -> Self {
        let len = piece as u64 * count as u64;
        if len == 0 || count == 1 || stride == piece as isize {
            return Segments { pieces: Pieces::One(start), len };
        }
        Segments { pieces: Pieces::Strided { first: start, piece, stride, skip: 0 }, len }
    }

    /// Makes segments of several pieces, in the order of the message.
    ///
    /// # Safety
    /// The conditions of [`Segments::from_raw`] hold for every piece; receive pieces do not overlap.
    pub unsafe fn from_list(list: &[Segment]) -> Self {
        if let [one] = list {
            // SAFETY: the caller's promise, passed on.
            return unsafe { Self::from_raw(one.start, one.len) };
        }
        let (list, len) = placed(list);
        Segments { pieces: Pieces::Many(list, 0, 0), len }
    }

    /// Makes segments that repeat the pieces of `list` `count` times, each time `stride` bytes further: an
    /// array of records with gaps. The list is allocated once, not per record.
    ///
    /// # Safety
    /// The conditions of [`Segments::from_raw`] hold for every piece; receive pieces do not overlap.
    pub unsafe fn from_tiled(list: &[Segment], stride: isize, count: usize) -> Self {
        if count == 1 {
            // SAFETY: the caller's promise, passed on.
            return unsafe { Self::from_list(list) };
        }
        let Some(base) = list.first().map(|piece| piece.start) else { return Self::empty() };
        let inside = |piece: &Segment| (piece.start.addr().wrapping_sub(base.addr()) as isize, piece.len);
        let tile = Arc::new(Tile::new(list.iter().map(inside), stride));
        // SAFETY: the caller's promise, passed on.
        unsafe { Self::from_tile(&tile, base, count) }
    }

    /// Makes segments of `count` elements of which the first is at `base`.
    ///
    /// # Safety
    /// The conditions of [`Segments::from_raw`] hold for every piece; receive pieces do not overlap.
    pub unsafe fn from_tile(tile: &Arc<Tile>, base: *mut u8, count: usize) -> Self {
        let len = tile.len * count as u64;
        if len == 0 {
            return Self::empty();
        }
        Segments { pieces: Pieces::Tiled { tile: tile.clone(), base, skip: 0 }, len }
    }

    /// Returns the total length in bytes.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the length is zero.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of contiguous pieces in the range.
    pub fn count(&self) -> usize {
        match &self.pieces {
            _ if self.len == 0 => 0,
            Pieces::One(_) => 1,
            Pieces::Strided { piece, skip, .. } => (*skip + self.len as usize).div_ceil(*piece),
            Pieces::Many(list, first, skip) => {
                let end = list[*first].before + *skip as u64 + self.len;
                list[*first..].partition_point(|piece| piece.before < end)
            }
            Pieces::Tiled { tile, skip, .. } => {
                let (tiles, rest) = ((skip + self.len) / tile.len, (skip + self.len) % tile.len);
                let last = tile.list.partition_point(|piece| piece.before < rest);
                tiles as usize * tile.list.len() + last - tile.found(*skip).0
            }
        }
    }

    /// Returns the `len` bytes from `offset` on, both limited to the range.
    pub fn slice(&self, offset: u64, len: u64) -> Segments {
        let offset = offset.min(self.len);
        let len = len.min(self.len - offset);
        let one = |start: *mut u8| Segments { pieces: Pieces::One(start), len };
        let pieces = match &self.pieces {
            Pieces::One(start) => return one(start.wrapping_add(offset as usize)),
            _ if len == 0 => return Segments::empty(),
            Pieces::Strided { first, piece, stride, skip } => {
                let at = *skip + offset as usize;
                let (index, skip) = (at / *piece, at % *piece);
                let first = first.wrapping_offset(index as isize * *stride);
                if skip + len as usize <= *piece {
                    return one(first.wrapping_add(skip));
                }
                Pieces::Strided { first, piece: *piece, stride: *stride, skip }
            }
            Pieces::Many(list, first, skip) => {
                let (index, skip) = found(list, *first, *skip as u64 + offset);
                let piece = &list[index];
                if skip + len as usize <= piece.segment.len {
                    return one(piece.segment.start.wrapping_add(skip));
                }
                Pieces::Many(list.clone(), index, skip)
            }
            Pieces::Tiled { tile, base, skip } => {
                let at = *skip + offset;
                let base = base.wrapping_offset((at / tile.len) as isize * tile.stride);
                let skip = at % tile.len;
                let (index, inside) = tile.found(skip);
                let piece = tile.list[index].of(base);
                if inside + len as usize <= piece.len {
                    return one(piece.start.wrapping_add(inside));
                }
                Pieces::Tiled { tile: tile.clone(), base, skip }
            }
        };
        Segments { pieces, len }
    }

    /// Iterates over the contiguous, non-empty pieces in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Segment> + '_ {
        self.iter_from(0)
    }

    /// Iterates over the pieces of the bytes from `offset` on; the first may be the rest of a piece.
    #[inline]
    fn iter_from(&self, offset: u64) -> Iter<'_> {
        let offset = offset.min(self.len);
        let mut at_base = core::ptr::null_mut();
        let (index, skip) = match &self.pieces {
            _ if offset == self.len => (0, 0),
            Pieces::One(_) => (0, offset as usize),
            Pieces::Strided { piece, skip, .. } => {
                let at = *skip + offset as usize;
                (at / *piece, at % *piece)
            }
            Pieces::Many(_, first, skip) if offset == 0 => (*first, *skip),
            Pieces::Many(list, first, skip) => found(list, *first, *skip as u64 + offset),
            Pieces::Tiled { tile, base, skip } => {
                let at = *skip + offset;
                at_base = base.wrapping_offset((at / tile.len) as isize * tile.stride);
                tile.found(at % tile.len)
            }
        };
        Iter { pieces: &self.pieces, index, skip, base: at_base, left: (self.len - offset) as usize }
    }

    /// Appends all bytes to `out`.
    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        if let Pieces::One(start) = self.pieces {
            return append(Segment { start, len: self.len as usize }, out);
        }
        if self.len >= LEAST {
            return self.append_long(out);
        }
        out.reserve(self.len as usize);
        let start = out.as_mut_ptr();
        let end = self.iter_from(0).fold(out.len(), |end, piece| {
            // SAFETY: readable by the promise of the maker; the total length of the pieces is reserved.
            unsafe { copy(piece.start, start.add(end), piece.len) };
            end + piece.len
        });
        // SAFETY: this number of bytes was written.
        unsafe { out.set_len(end) };
    }

    /// Appends many bytes in pieces; idle cores share the copy.
    #[cold]
    fn append_long(&self, out: &mut Vec<u8>) {
        out.reserve(self.len as usize);
        // SAFETY: the bytes behind the end are reserved and have no other reference.
        let room = unsafe { Segments::from_raw(out.as_mut_ptr().add(out.len()), self.len as usize) };
        room.copy_from(self);
        // SAFETY: this number of bytes was written.
        unsafe { out.set_len(out.len() + self.len as usize) };
    }

    /// Appends a packet to `out`: `head`, eight bytes of the wire per word, then all bytes.
    #[inline]
    pub fn append_behind(&self, head: &[u64], out: &mut Vec<u8>) {
        out.extend(head.iter().flat_map(|word| word.to_ne_bytes()));
        self.append_to(out);
    }

    /// Writes `data` from `offset` on; returns the number of bytes that fitted.
    #[inline]
    pub fn write(&self, offset: u64, data: &[u8]) -> usize {
        if let Pieces::One(start) = &self.pieces {
            let offset = offset.min(self.len) as usize;
            let len = data.len().min(self.len as usize - offset);
            fill(Segment { start: start.wrapping_add(offset), len }, &data[..len]);
            return len;
        }
        self.write_pieces(offset, data)
    }

    /// Writes all of `data` if the memory is one piece with space for it; otherwise returns false and
    /// writes nothing. No allocation is freed: one piece owns none.
    #[inline(always)]
    pub(crate) fn write_whole(&self, data: &[u8]) -> bool {
        let Pieces::One(start) = self.pieces else { return false };
        let fits = data.len() as u64 <= self.len;
        if fits {
            fill(Segment { start, len: data.len() }, data);
        }
        fits
    }

    #[inline(never)]
    fn write_pieces(&self, offset: u64, data: &[u8]) -> usize {
        let part = self.slice(offset, data.len() as u64);
        part.iter_from(0).fold(0, |done, piece| {
            // SAFETY: writable by the promise of the maker; all pieces together are as long as `part`, which
            // is no longer than `data`.
            unsafe { copy(data.as_ptr().add(done), piece.start, piece.len) };
            done + piece.len
        })
    }

    /// Copies from `from`, piece by piece, as many bytes as both hold; returns their number. Both must be
    /// memory of this process. Idle cores share long copies.
    pub fn copy_from(&self, from: &Segments) -> u64 {
        let len = self.len.min(from.len);
        if len < LEAST || !self.is_apart_from(from) {
            return self.copy_pieces(from);
        }
        let is_plain = matches!((&self.pieces, &from.pieces), (Pieces::One(_), Pieces::One(_)));
        let kind = if is_plain { Kind::Copy } else { Kind::Pack };
        bytes_together(kind, len, &|range| {
            let part = |of: &Segments| of.slice(range.start, range.end - range.start);
            part(self).copy_pieces(&part(from));
        });
        len
    }

    /// Whether the address ranges of both do not overlap; false for lists, whose range is not computed.
    fn is_apart_from(&self, other: &Segments) -> bool {
        let (Some(one), Some(other)) = (self.bounds(), other.bounds()) else { return false };
        one.1 <= other.0 || other.1 <= one.0
    }

    /// Returns the addresses of the first byte and behind the last one.
    fn bounds(&self) -> Option<(usize, usize)> {
        match &self.pieces {
            Pieces::One(start) => Some((start.addr(), start.addr() + self.len as usize)),
            Pieces::Strided { first, piece, stride, .. } => {
                let last = first.wrapping_offset((self.count() as isize - 1) * *stride).addr();
                Some((first.addr().min(last), first.addr().max(last) + *piece))
            }
            Pieces::Many(..) | Pieces::Tiled { .. } => None,
        }
    }

    fn copy_pieces(&self, from: &Segments) -> u64 {
        let (mut sources, mut targets) = (from.iter(), self.iter());
        let (mut source, mut target) = (sources.next(), targets.next());
        let mut done = 0;
        while let (Some(a), Some(b)) = (source, target) {
            let len = a.len.min(b.len);
            // SAFETY: both pieces are valid by the promise of their makers; this copy allows overlap.
            unsafe { copy_overlapping(a.start, b.start, len) };
            done += len as u64;
            source = a.behind(len).or_else(|| sources.next());
            target = b.behind(len).or_else(|| targets.next());
        }
        done
    }

    /// Returns all bytes as one slice to read, if they are one piece.
    #[inline]
    pub fn contiguous(&self) -> Option<&[u8]> {
        let Pieces::One(start) = self.pieces else { return None };
        if self.len == 0 {
            return Some(&[]);
        }
        // SAFETY: as for the slices below.
        Some(unsafe { core::slice::from_raw_parts(start, self.len as usize) })
    }

    /// Returns the address of the first byte, if it is one piece, for other processes that read it.
    pub fn address(&self) -> Option<u64> {
        self.contiguous().map(|bytes| bytes.as_ptr().expose_provenance() as u64)
    }

    /// Iterates over the pieces as slices to read, for drivers that gather.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> + '_ {
        self.slices_from(0)
    }

    /// Iterates over slices of the bytes from `offset` on, for drivers that send a message in several
    /// steps.
    #[inline]
    pub fn slices_from(&self, offset: u64) -> impl Iterator<Item = &[u8]> + '_ {
        // SAFETY: valid for reading by the promise of the maker, for as long as the request runs; the
        // request holds these segments.
        self.iter_from(offset).map(|p| unsafe { core::slice::from_raw_parts(p.start, p.len) })
    }
}

impl Segment {
    /// Returns the rest behind the first `len` bytes, if there is one.
    fn behind(self, len: usize) -> Option<Segment> {
        (len < self.len).then(|| Segment { start: self.start.wrapping_add(len), len: self.len - len })
    }
}

#[inline]
fn append(piece: Segment, out: &mut Vec<u8>) {
    let end = out.len();
    out.reserve(piece.len);
    // SAFETY: readable by the promise of the maker; `len` bytes are reserved, and then written.
    unsafe {
        copy(piece.start, out.as_mut_ptr().add(end), piece.len);
        out.set_len(end + piece.len);
    }
}

#[inline]
fn fill(piece: Segment, data: &[u8]) {
    debug_assert_eq!(piece.len, data.len());
    // SAFETY: writable by the promise of the maker, and `data` is as long as the piece.
    unsafe { copy(data.as_ptr(), piece.start, data.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// Returns the same bytes of `memory` as a list and as strided pieces.
    fn both(memory: &mut [u8], piece: usize, stride: usize, count: usize) -> [Segments; 2] {
        let start = memory.as_mut_ptr();
        let list: Vec<Segment> =
            (0..count).map(|i| Segment { start: start.wrapping_add(i * stride), len: piece }).collect();
        // SAFETY: the memory has all pieces, and outlives the test.
        unsafe { [Segments::from_list(&list), Segments::from_strided(start, piece, stride as isize, count)] }
    }

    pub(super) fn bytes(segments: &Segments) -> Vec<u8> {
        let mut all = Vec::new();
        segments.append_to(&mut all);
        all
    }

    proptest! {
        #[test]
        fn strided_pieces_equal_a_list(
            (piece, gap, count) in (1..20_usize, 0..9_usize, 0..9_usize),
            (offset, len) in (0..200_u64, 0..200_u64),
            (again, less) in (0..40_u64, 0..40_u64),
        ) {
            let stride = piece + gap;
            let mut memory: Vec<u8> = (0..=stride * count).map(|i| i as u8).collect();
            let content = memory.clone();
            let places = (0..piece * count).map(|i| i / piece * stride + i % piece);
            let expected: Vec<u8> = places.map(|at| content[at]).collect();
            let cut = |bytes: &[u8], offset: u64, len: u64| {
                let begin = bytes.len().min(offset as usize);
                bytes[begin..bytes.len().min(begin + len as usize)].to_vec()
            };
            for whole in both(&mut memory, piece, stride, count) {
                prop_assert_eq!(bytes(&whole), &expected[..]);
                let part = whole.slice(offset, len);
                let expected = cut(&expected, offset, len);
                prop_assert_eq!((bytes(&part), part.len()), (expected.clone(), expected.len() as u64));
                prop_assert_eq!(part.count(), part.iter().count());
                let behind: Vec<u8> = part.slices_from(again).flatten().copied().collect();
                prop_assert_eq!(behind, cut(&expected, again, u64::MAX / 2));
                let deeper = part.slice(again, less);
                prop_assert_eq!(bytes(&deeper), cut(&expected, again, less));
                prop_assert_eq!(deeper.count(), deeper.iter().count());
            }
        }

        #[test]
        fn a_repeated_list_equals_a_long_list(
            record in proptest::collection::vec((0..5_usize, 0..4_usize), 1..5),
            (count, backwards) in (1..6_usize, proptest::bool::ANY),
            (offset, len, again, less) in (0..60_u64, 0..60_u64, 0..20_u64, 0..20_u64),
        ) {
            let extent: usize = record.iter().map(|(len, gap)| len + gap).sum();
            let mut memory: Vec<u8> = (0..=extent * count).map(|i| i as u8).collect();
            let begin = memory.as_mut_ptr().wrapping_add(if backwards { extent * (count - 1) } else { 0 });
            let stride = if backwards { -(extent as isize) } else { extent as isize };
            let pieces = record.iter().scan(begin, |at, (len, gap)| {
                let piece = Segment { start: *at, len: *len };
                *at = at.wrapping_add(len + gap);
                Some(piece)
            });
            let pieces: Vec<Segment> = pieces.collect();
            let moved = |p: &Segment, by| Segment { start: p.start.wrapping_offset(by), ..*p };
            let all = |time| pieces.iter().map(move |p| moved(p, time * stride));
            let long: Vec<Segment> = (0..count as isize).flat_map(all).collect();
            // SAFETY: the memory has all pieces, and outlives the test.
            let (tiled, list) =
                unsafe { (Segments::from_tiled(&pieces, stride, count), Segments::from_list(&long)) };
            prop_assert_eq!((bytes(&tiled), tiled.count()), (bytes(&list), list.count()));
            let [one, other] = [&tiled, &list].map(|whole| whole.slice(offset, len));
            prop_assert_eq!((bytes(&one), one.count()), (bytes(&other), other.count()));
            prop_assert_eq!(one.iter().count(), one.count());
            let rest = |of: &Segments| of.slices_from(again).flatten().copied().collect::<Vec<u8>>();
            prop_assert_eq!(rest(&one), rest(&other));
            let [one, other] = [one, other].map(|part| part.slice(again, less));
            prop_assert_eq!((bytes(&one), one.count()), (bytes(&other), other.count()));
        }

        #[test]
        fn pieces_of_different_lengths_are_copied_into_each_other(
            (piece, gap, count) in (1..20_usize, 1..9_usize, 1..9_usize),
            (other, room) in (1..20_usize, 1..9_usize),
        ) {
            let stride = piece + gap;
            let mut source: Vec<u8> = (0..stride * count).map(|i| i as u8 | 0x80).collect();
            let mut target = vec![0; (other + 1) * room];
            let [list, strided] = both(&mut source, piece, stride, count);
            for from in [list, strided] {
                for into in both(&mut target, other, other + 1, room) {
                    let done = into.copy_from(&from);
                    prop_assert_eq!(done, into.len().min(from.len()));
                    prop_assert_eq!(bytes(&into.slice(0, done)), bytes(&from.slice(0, done)));
                    let blank = vec![0; other * room];
                    prop_assert_eq!(into.write(0, &blank), blank.len());
                    prop_assert_eq!(bytes(&into), blank);
                }
            }
        }
    }
}
