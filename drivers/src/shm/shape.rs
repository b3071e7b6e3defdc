//! How the data of a message lies in memory.

use crate::node::Segment;
use nmad_engine::memory::Segments;

/// Blocks of this length and more are copied as fast as one piece.
pub const LONG: u64 = 2 << 10;

/// How data lies in memory: each method has a cost for a block, so lengths alone do not compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One piece, or long ones.
    Whole,
    /// Blocks.
    Blocks,
    /// Blocks that are too short for non-temporal stores.
    ShortBlocks,
}

impl Shape {
    pub(super) const ALL: usize = 3;

    /// The shape of this memory, by the mean length of its pieces.
    pub fn of(memory: &Segments) -> Shape {
        match () {
            () if !memory.is_finer_than(LONG) => Shape::Whole,
            () if !memory.is_finer_than(Segment::NON_TEMPORAL_MIN as u64) => Shape::Blocks,
            () => Shape::ShortBlocks,
        }
    }
}
