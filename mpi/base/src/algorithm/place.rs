//! Where data lies, before anybody knows at which address: buffers are bound when a schedule starts.

use crate::datatype::{Basic, Datatype, Form};
use std::ops::Range;

/// A buffer that a schedule works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// The caller's buffer to send.
    Send,
    /// The caller's buffer to receive.
    Recv,
    /// Memory of the run.
    Scratch,
}

/// A byte in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Which buffer.
    pub buffer: Buffer,
    /// Bytes from its address; may be negative, since a datatype may begin before its address.
    pub offset: i64,
}

impl Spot {
    /// The address of a buffer itself.
    pub const fn start(buffer: Buffer) -> Spot {
        Spot { buffer, offset: 0 }
    }

    /// The place `bytes` bytes further.
    #[must_use]
    pub const fn skip(self, bytes: i64) -> Spot {
        Spot { buffer: self.buffer, offset: self.offset + bytes }
    }
}

/// Data at a spot: what one message carries.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where it begins: the first byte, or the address that a datatype counts from.
    pub spot: Spot,
    /// How it lies there.
    pub span: Span,
}

/// How data lies.
#[derive(Debug, Clone)]
pub enum Span {
    /// This number of bytes in a row.
    Bytes(u64),
    /// Bytes `from` to `from + len` of the data of elements of a datatype with gaps.
    Elements {
        /// Elements.
        count: i64,
        /// Of this type.
        datatype: Datatype,
        /// Bytes of data, gaps not counted, to leave out.
        from: u64,
        /// Bytes of data.
        len: u64,
    },
}

impl Place {
    /// Bytes in a row.
    pub const fn bytes(spot: Spot, len: u64) -> Place {
        Place { spot, span: Span::Bytes(len) }
    }

    /// Elements of a datatype; `spot` is the address that the datatype counts from.
    pub fn elements(spot: Spot, count: i64, datatype: &Datatype) -> Place {
        let len = (count * datatype.size()).max(0) as u64;
        if len == 0 || datatype.is_contiguous() {
            return Place::bytes(spot.skip(datatype.true_lower_bound()), len);
        }
        Place { spot, span: Span::Elements { count, datatype: datatype.clone(), from: 0, len } }
    }

    /// `count` pieces of `len` bytes, `stride` bytes from one to the next.
    pub fn strided(start: Spot, (count, len, stride): (i64, i64, i64)) -> Place {
        let byte = Datatype::predefined(Basic::Byte);
        let pieces = Datatype::hvector(Form::Large, count, len, stride, byte);
        Place::elements(start, 1, &pieces.expect("neither a number nor a length is negative"))
    }

    /// Bytes of data.
    pub const fn len(&self) -> u64 {
        match self.span {
            Span::Bytes(len) | Span::Elements { len, .. } => len,
        }
    }

    /// The offset of the first byte of its first element, if it has any data.
    pub fn first(&self) -> Option<i64> {
        match &self.span {
            Span::Bytes(len) => (*len > 0).then_some(self.spot.offset),
            Span::Elements { count, datatype, .. } => Some(self.spot.offset + datatype.first(*count)?),
        }
    }

    /// Whether it lies in a row.
    pub const fn is_contiguous(&self) -> bool {
        matches!(self.span, Span::Bytes(_))
    }

    /// A part of its data, gaps not counted; must lie within.
    pub fn slice(&self, part: Range<u64>) -> Place {
        debug_assert!(part.start <= part.end && part.end <= self.len());
        let part_len = part.end - part.start;
        match &self.span {
            Span::Bytes(_) => Place::bytes(self.spot.skip(part.start as i64), part_len),
            Span::Elements { count, datatype, from, .. } => {
                let (count, datatype, from) = (*count, datatype.clone(), from + part.start);
                Place { spot: self.spot, span: Span::Elements { count, datatype, from, len: part_len } }
            }
        }
    }
}

/// One block for each rank in a buffer.
#[derive(Debug, Clone)]
pub struct Blocks(Layout);

#[derive(Debug, Clone)]
enum Layout {
    Even {
        start: Spot,
        count: i64,
        datatype: Datatype,
    },
    /// Rows of bytes: where each begins, and the end of the last.
    Rows {
        start: Spot,
        bounds: Box<[u64]>,
    },
    Places(Box<[Place]>),
}

impl Blocks {
    /// Blocks of the same size, one behind the other.
    pub fn even(buffer: Buffer, count: i64, datatype: &Datatype) -> Blocks {
        Blocks(Layout::Even { start: Spot::start(buffer), count, datatype: datatype.clone() })
    }

    /// A block for each entry of `counts`; displacements count extents of the datatype.
    pub fn uneven(buffer: Buffer, counts: &[i64], displacements: &[i64], datatype: &Datatype) -> Blocks {
        let place = |(count, displacement): (&i64, &i64)| {
            Place::elements(Spot::start(buffer).skip(displacement * datatype.extent()), *count, datatype)
        };
        Blocks::places(counts.iter().zip(displacements).map(place).collect())
    }

    /// A block for each entry of `counts`, each of a type of its own; displacements count bytes.
    pub fn mixed(buffer: Buffer, counts: &[i64], displacements: &[i64], types: &[Datatype]) -> Blocks {
        let place = |((count, displacement), datatype): ((&i64, &i64), &Datatype)| {
            Place::elements(Spot::start(buffer).skip(*displacement), *count, datatype)
        };
        Blocks::places(counts.iter().zip(displacements).zip(types).map(place).collect())
    }

    /// Blocks that lie anywhere.
    pub fn places(places: Vec<Place>) -> Blocks {
        Blocks(Layout::Places(places.into()))
    }

    /// Bytes, a row behind the other, of these lengths.
    pub fn rows(start: Spot, lens: impl Iterator<Item = u64>) -> Blocks {
        let ends = lens.scan(0, |end, len| {
            *end += len;
            Some(*end)
        });
        Blocks(Layout::Rows { start, bounds: std::iter::once(0).chain(ends).collect() })
    }

    /// The blocks of these ranks in this order. They stay rows if the ranks follow each other.
    pub fn of(&self, ranks: &[usize]) -> Blocks {
        let first = ranks.first().copied().unwrap_or_default();
        let follow = ranks.iter().enumerate().all(|(place, &rank)| rank == first + place);
        match &self.0 {
            Layout::Even { start, count, datatype } if follow => {
                let start = start.skip(first as i64 * count * datatype.extent());
                Blocks(Layout::Even { start, count: *count, datatype: datatype.clone() })
            }
            Layout::Rows { start, bounds } if follow => {
                Blocks::rows(start.skip(bounds[first] as i64), ranks.iter().map(|&rank| self.len(rank)))
            }
            _ => Blocks::places(ranks.iter().map(|&rank| self.place(rank)).collect()),
        }
    }

    /// The block of a rank.
    pub fn place(&self, rank: usize) -> Place {
        match &self.0 {
            Layout::Even { start, count, datatype } => {
                Place::elements(start.skip(rank as i64 * count * datatype.extent()), *count, datatype)
            }
            Layout::Rows { start, bounds } => Place::bytes(start.skip(bounds[rank] as i64), self.len(rank)),
            Layout::Places(places) => places[rank].clone(),
        }
    }

    /// Bytes of data in the block of a rank.
    pub fn len(&self, rank: usize) -> u64 {
        match &self.0 {
            Layout::Even { count, datatype, .. } => (count * datatype.size()).max(0) as u64,
            Layout::Rows { bounds, .. } => bounds[rank + 1] - bounds[rank],
            Layout::Places(places) => places[rank].len(),
        }
    }

    /// Bytes of data in the blocks of several ranks in a row.
    pub fn total(&self, ranks: Range<usize>) -> u64 {
        match &self.0 {
            Layout::Even { .. } => self.len(0) * ranks.len() as u64,
            Layout::Rows { bounds, .. } => bounds[ranks.end] - bounds[ranks.start],
            Layout::Places(places) => places[ranks].iter().map(Place::len).sum(),
        }
    }

    /// The lowest offset at which a block of `ranks` ranks begins, if they have any data.
    pub fn first(&self, ranks: usize) -> Option<i64> {
        match &self.0 {
            Layout::Places(places) => places[..ranks].iter().filter_map(Place::first).min(),
            Layout::Even { .. } | Layout::Rows { .. } => self.range(0..ranks)?.first(),
        }
    }

    /// The blocks of several ranks in a row as one place; none unless they follow each other in memory.
    pub fn range(&self, ranks: Range<usize>) -> Option<Place> {
        match &self.0 {
            Layout::Even { start, count, datatype } => {
                let start = start.skip(ranks.start as i64 * count * datatype.extent());
                Some(Place::elements(start, count * ranks.len() as i64, datatype))
            }
            Layout::Rows { start, bounds } => {
                Some(Place::bytes(start.skip(bounds[ranks.start] as i64), self.total(ranks)))
            }
            Layout::Places(_) => None,
        }
    }

    /// All blocks of rows, of which there are so many.
    pub(super) fn all(&self, ranks: usize) -> Place {
        self.range(0..ranks).expect("rows follow each other")
    }

    /// The blocks of these ranks in this order as one place; none unless they follow each other in memory, or
    /// all blocks do and the ranks are equally far apart.
    pub fn series(&self, ranks: &[usize]) -> Option<Place> {
        let (&first, &last) = (ranks.first()?, ranks.last()?);
        let step = ranks.get(1).map_or(1, |&second| second as i64 - first as i64);
        if ranks.windows(2).any(|pair| pair[1] as i64 - pair[0] as i64 != step) {
            return None;
        }
        if step == 1 {
            return self.range(first..last + 1);
        }
        let (lowest, highest) = (first.min(last), first.max(last));
        let all = self.range(lowest..highest + 1).filter(Place::is_contiguous)?;
        let block = self.len(first) as i64;
        let is_even = matches!(self.0, Layout::Even { .. });
        let start = all.spot.skip((first - lowest) as i64 * block);
        is_even.then(|| Place::strided(start, (ranks.len() as i64, block, step * block)))
    }

    /// Bytes of each block, if all are known to have as many.
    pub fn each(&self) -> Option<u64> {
        matches!(self.0, Layout::Even { .. }).then(|| self.len(0))
    }

    /// Whether any row of blocks is one place.
    pub const fn is_even(&self) -> bool {
        !matches!(self.0, Layout::Places(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Basic;

    #[test]
    fn blocks_of_ranks_in_a_row_stay_in_a_row_and_all_keep_their_places() {
        let even = Blocks::even(Buffer::Recv, 3, Datatype::predefined(Basic::Int32));
        let rows = Blocks::rows(Spot::start(Buffer::Scratch), [5, 0, 7, 1, 9].into_iter());
        for blocks in [&even, &rows] {
            for (ranks, is_row) in [(&[2, 3, 4][..], true), (&[1, 3], false), (&[3, 2], false), (&[0], true)]
            {
                let some = blocks.of(ranks);
                for (place, &rank) in ranks.iter().enumerate() {
                    assert_eq!(
                        (some.place(place).spot, some.len(place)),
                        (blocks.place(rank).spot, blocks.len(rank))
                    );
                }
                assert_eq!(some.range(0..ranks.len()).is_some(), is_row, "{ranks:?}");
            }
        }
    }
}
