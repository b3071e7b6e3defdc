//! The members of a team group by group.

use super::Reach;
use crate::sequence::Sequence;
use std::sync::OnceLock;

/// The members of a team, group by group in the order of their first members: those of a node, a cache or a
/// switch.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) members: Sequence,
    /// Where each group begins in `members`, and the end of the last.
    pub(super) starts: Sequence,
    /// The group of each member.
    pub(super) of: Sequence,
    /// Members of the largest.
    pub(super) largest: usize,
    /// For each distance of two to a power, see [`Groups::crossing`].
    crossing: OnceLock<Box<[[u32; 2]]>>,
    /// For each number of branches of a tree, see [`Groups::crossing_in_tree`].
    in_trees: OnceLock<[u32; 7]>,
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
        let (starts, of) = (starts.into_iter().collect(), of.into_iter().collect());
        let (crossing, in_trees) = (OnceLock::new(), OnceLock::new());
        Groups { members, starts, of, largest, crossing, in_trees }
    }

    /// The most members of one group that have their partner in another one.
    pub(super) fn crossing(&self, reach: Reach) -> usize {
        let size = self.of.len() as usize;
        let (distance, kind) = match reach {
            Reach::Shift(distance) => (distance % size.max(1), 0),
            Reach::Flip(distance) => (distance, 1),
        };
        if !distance.is_power_of_two() {
            return if distance == 0 { 0 } else { self.largest };
        }
        let rounds = size.next_power_of_two().ilog2();
        let all = self.crossing.get_or_init(|| {
            let both = |distance| [Reach::Shift(distance), Reach::Flip(distance)];
            (0..rounds).map(|round| both(1 << round).map(|reach| self.count_crossing(reach))).collect()
        });
        all.get(distance.ilog2() as usize).map_or(0, |counts| counts[kind] as usize)
    }

    fn count_crossing(&self, reach: Reach) -> u32 {
        let (of, mut counts) = (self.of.iter().collect::<Vec<u32>>(), vec![0; self.count()]);
        for rank in 0..of.len() {
            let partner = match reach {
                Reach::Shift(distance) => (rank + distance) % of.len(),
                Reach::Flip(distance) => rank ^ distance,
            };
            if partner < of.len() && of[partner] != of[rank] {
                counts[of[rank] as usize] += 1;
            }
        }
        counts.into_iter().max().unwrap_or(0)
    }

    /// The most messages from one group to others in a tree of so many branches, one over each edge.
    pub(super) fn crossing_in_tree(&self, arity: usize) -> usize {
        let all = self.in_trees.get_or_init(|| std::array::from_fn(|at| self.count_in_tree(at + 1)));
        all.get(arity - 1).copied().unwrap_or_else(|| self.count_in_tree(arity)) as usize
    }

    fn count_in_tree(&self, arity: usize) -> u32 {
        let (of, mut counts) = (self.of.iter().collect::<Vec<u32>>(), vec![0; self.count()]);
        for rank in 1..of.len() {
            let parent = of[(rank - 1) / arity];
            counts[parent as usize] += u32::from(parent != of[rank]);
        }
        counts.into_iter().max().unwrap_or(0)
    }

    /// As [`Groups::crossing`], in the mean, if each has any other member as its partner.
    pub(super) fn crossing_to_any(&self) -> f64 {
        let size = self.of.len() as usize;
        let to_others = |number| self.size(number) * (size - self.size(number));
        let most = (0..self.count()).map(to_others).max().unwrap_or(0);
        most as f64 / size.saturating_sub(1).max(1) as f64
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
