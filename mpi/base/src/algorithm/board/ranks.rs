//! A set of the ranks of a board.

use super::RANKS_MAX;

/// See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ranks(u32);

const _: () = assert!(RANKS_MAX <= u32::BITS as usize);

impl Ranks {
    /// No rank.
    pub const NONE: Ranks = Ranks(0);

    /// Adds a rank.
    #[inline]
    pub const fn insert(&mut self, rank: usize) {
        self.0 |= 1 << rank;
    }

    /// Whether no rank is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a rank is in it.
    pub const fn contains(self, rank: usize) -> bool {
        rank < RANKS_MAX && self.0 & 1 << rank != 0
    }
}

impl FromIterator<usize> for Ranks {
    #[inline]
    fn from_iter<I: IntoIterator<Item = usize>>(ranks: I) -> Ranks {
        Ranks(ranks.into_iter().fold(0, |set, rank| set | 1 << rank))
    }
}
