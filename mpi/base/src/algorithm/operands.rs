//! The vectors that reductions work on: rows of elements, and how they are divided.

use super::operator::Operator;
use super::place::{Place, Spot};
use std::ops::Range;

/// A vector of operands, the same length on all ranks.
#[derive(Debug, Clone)]
pub struct Operands {
    /// The operator that reduces them.
    pub operator: Operator,
    /// Elements.
    pub count: i64,
}

impl Operands {
    /// Bytes of data.
    pub fn len(&self) -> u64 {
        self.operator.len(self.count)
    }

    /// Whether they lie in a row, on all ranks alike: only types of the standard are known to be the same.
    pub fn is_plain(&self) -> bool {
        let datatype = self.operator.datatype();
        datatype.basic().is_some() && datatype.is_contiguous()
    }

    /// All of it.
    pub fn place(&self, spot: Spot) -> Place {
        self.operator.place(spot, self.count)
    }

    /// Where an element lies.
    pub fn at(&self, spot: Spot, element: i64) -> Spot {
        spot.skip(element * self.operator.extent())
    }

    /// Some of the elements.
    pub fn part(&self, spot: Spot, elements: &Range<i64>) -> Place {
        self.operator.place(self.at(spot, elements.start), elements.end - elements.start)
    }

    /// The elements of part `index` of `parts` nearly equal ones.
    pub fn share(&self, parts: usize, index: usize) -> Range<i64> {
        let bound = |index: usize| {
            let (count, parts, index) = (self.count as i128, parts as i128, index as i128);
            (count * index / parts) as i64
        };
        bound(index)..bound(index + 1)
    }

    /// A row of elements in pieces of about `bytes` bytes, the same on all ranks; at least one piece.
    pub fn pieces(&self, elements: Range<i64>, bytes: u64) -> Vec<Range<i64>> {
        let len = self.operator.len(elements.end - elements.start);
        let parts = len.div_ceil(bytes).clamp(1, MOST_PIECES) as i64;
        let count = elements.end - elements.start;
        let bound =
            |index: i64| elements.start + (i128::from(count) * i128::from(index) / i128::from(parts)) as i64;
        (0..parts).map(|index| bound(index)..bound(index + 1)).collect()
    }
}

/// Pieces of one vector; slots are numbered by rank and piece.
pub const MOST_PIECES: u64 = 64;
