//! The members of a team group by group.

use crate::sequence::Sequence;

/// The members of a team, group by group in the order of their first members. A group are those of a node;
/// in a team of one node those of a cache.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) members: Sequence,
    /// Where each group begins in `members`, and the end of the last.
    pub(super) starts: Sequence,
    /// The group of each member.
    pub(super) of: Sequence,
    /// Members of the largest.
    pub(super) largest: usize,
}

impl Groups {
    pub(super) fn new(places: &Sequence) -> Groups {
        let places: Vec<u32> = places.iter().collect();
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        order.sort_by_key(|&member| places[member as usize]);
        let mut groups: Vec<&[u32]> =
            order.chunk_by(|&a, &b| places[a as usize] == places[b as usize]).collect();
        groups.sort_by_key(|group| group[0]);
        let (mut of, mut starts) = (vec![0; places.len()], vec![0]);
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|&member| of[member as usize] = number as u32);
            starts.push(starts[number] + group.len() as u32);
        }
        let largest = groups.iter().map(|group| group.len()).max().unwrap_or(1);
        let members = groups.iter().copied().flatten().copied().collect();
        Groups { members, starts: starts.into_iter().collect(), of: of.into_iter().collect(), largest }
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len() as usize - 1
    }

    /// How many members a group has.
    pub(super) fn size(&self, number: usize) -> usize {
        (at(&self.starts, number + 1) - at(&self.starts, number)) as usize
    }

    /// A member of a group, by its place there.
    pub(super) fn member(&self, number: usize, place: usize) -> usize {
        at(&self.members, at(&self.starts, number) as usize + place) as usize
    }

    pub(super) fn group(&self, number: usize) -> impl Iterator<Item = usize> + Clone {
        (0..self.size(number)).map(move |place| self.member(number, place))
    }

    /// The group of a member.
    pub(super) fn of(&self, member: usize) -> usize {
        at(&self.of, member) as usize
    }
}

/// A number that is there.
pub(super) fn at(sequence: &Sequence, place: usize) -> u32 {
    sequence.get(place as u32).expect("ranks and places of a team are below its size")
}
