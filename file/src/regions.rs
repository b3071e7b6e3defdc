//! The division of a file into regions of equal length, and their owners in turn.

use crate::piece::{Piece, Pieces};

/// The regions of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regions {
    /// Bytes of a region: a multiple of the file system's block.
    unit: u64,
    /// The owners, by rank: region `n` is that of owner `n % owners`.
    owners: Vec<i32>,
}

/// The bytes of an access that lie in one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Number of the region.
    pub region: u64,
    /// Where the data of the part begin in those of the access.
    pub begin: u64,
    /// The bytes in the file.
    pub pieces: Pieces,
}

impl Regions {
    /// Regions of about `unit` bytes, a multiple of `block`; there is one owner at least.
    pub fn new(unit: u64, block: u64, owners: Vec<i32>) -> Regions {
        assert!(!owners.is_empty(), "a file without an owner");
        let block = block.max(1);
        Regions { unit: unit.max(block).next_multiple_of(block), owners }
    }

    /// Bytes of a region.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// The ranks that own regions, in turn.
    pub fn owners(&self) -> &[i32] {
        &self.owners
    }

    /// These regions with the first owner as the only one.
    pub fn of_one(mut self) -> Regions {
        self.owners.truncate(1);
        self
    }

    /// The region of a byte.
    pub fn of(&self, offset: u64) -> u64 {
        offset / self.unit
    }

    /// The rank that owns a region.
    pub fn owner(&self, region: u64) -> i32 {
        self.owners[(region % self.owners.len() as u64) as usize]
    }

    /// The rank that owns a region if only some ranks are alive: the region of an owner that is gone belongs
    /// to the next owner. `None`: none of them is alive.
    pub fn owner_alive(&self, region: u64, is_alive: impl Fn(i32) -> bool) -> Option<i32> {
        let first = (region % self.owners.len() as u64) as usize;
        let (before, from) = self.owners.split_at(first);
        from.iter().chain(before).copied().find(|rank| is_alive(*rank))
    }

    /// Divides an access whose pieces ascend by regions; the parts ascend.
    pub fn divide(&self, pieces: &Pieces) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut done = 0;
        for piece in pieces.list() {
            let mut rest = *piece;
            while rest.len > 0 {
                let region = self.of(rest.offset);
                let len = rest.len.min((region + 1) * self.unit - rest.offset);
                let inside = Piece { offset: rest.offset, len };
                match parts.last_mut() {
                    Some(last) if last.region == region => last.pieces.push(inside),
                    _ => parts.push(Part { region, begin: done, pieces: Pieces::from_iter([inside]) }),
                }
                done += len;
                rest = Piece { offset: rest.offset + len, len: rest.len - len };
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_are_multiples_of_the_block() {
        assert_eq!(Regions::new(5000, 4096, vec![0]).unit(), 8192);
        assert_eq!(Regions::new(0, 4096, vec![0]).unit(), 4096);
        assert_eq!(Regions::new(7, 0, vec![0]).unit(), 7);
    }

    #[test]
    fn owners_take_turns() {
        let regions = Regions::new(10, 1, vec![4, 7]);
        let owners: Vec<i32> = [0, 9, 10, 25].map(|offset| regions.owner(regions.of(offset))).into();
        assert_eq!(owners, [4, 4, 7, 4]);
    }

    proptest! {
        #[test]
        fn parts_are_the_access(
            runs in prop::collection::vec((0_u64..30, 1_u64..40), 1..20),
            unit in 1_u64..25,
        ) {
            let regions = Regions::new(unit, 1, vec![0, 1, 2]);
            let mut at = 0;
            let mut pieces = Pieces::default();
            for (gap, len) in runs {
                pieces.push(Piece { offset: at + gap, len });
                at += gap + len;
            }
            let parts = regions.divide(&pieces);
            let mut all = Pieces::default();
            for part in &parts {
                prop_assert_eq!(part.begin, all.len());
                for piece in part.pieces.list() {
                    prop_assert_eq!(regions.of(piece.offset), part.region);
                    prop_assert_eq!(regions.of(piece.end() - 1), part.region);
                    all.push(*piece);
                }
            }
            prop_assert_eq!(all, pieces);
            prop_assert!(parts.windows(2).all(|pair| pair[0].region < pair[1].region));
        }
    }
}
