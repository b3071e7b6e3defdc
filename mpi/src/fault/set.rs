//! A set of ranks of one communicator.

/// Ranks, as bits; sets that are compared or joined belong to the same communicator.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(crate) struct Set(Vec<u64>);

impl Set {
    /// No rank of `size`.
    pub(crate) fn none(size: usize) -> Set {
        Set(vec![0; size.div_ceil(64)])
    }

    pub(crate) fn has(&self, rank: usize) -> bool {
        self.0.get(rank / 64).is_some_and(|word| word >> (rank % 64) & 1 == 1)
    }

    pub(crate) fn add(&mut self, rank: usize) {
        if let Some(word) = self.0.get_mut(rank / 64) {
            *word |= 1 << (rank % 64);
        }
    }

    pub(crate) fn add_all(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    pub(crate) fn keep_all(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }

    /// Returns whether all ranks of `other` are in this set.
    pub(crate) fn covers(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).all(|(word, other)| other & !word == 0)
    }

    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Returns the ranks in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len() * 64).filter(|&rank| self.has(rank))
    }

    pub(crate) fn encode(&self, into: &mut Vec<u8>) {
        self.0.iter().for_each(|word| into.extend(word.to_le_bytes()));
    }

    /// Reads a set for a communicator of `size` ranks, and moves `from` behind it; `None` if it is cut off.
    pub(crate) fn decode(from: &mut &[u8], size: usize) -> Option<Set> {
        let (words, rest) = from.split_at_checked(size.div_ceil(64) * 8)?;
        *from = rest;
        Some(Set(words.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()))
    }
}
