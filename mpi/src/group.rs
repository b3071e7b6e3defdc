//! Groups: ordered sets of processes (MPI 5.0, section 7.3).
//!
//! Processes are known by their number in COMM_WORLD, so all of this is local. This module knows no
//! communicator and no handle table.

use std::sync::Arc;

use crate::comm::Members;
use crate::constant::{Comparison, PROC_NULL, UNDEFINED};
use crate::error::{Class, Result};
use crate::session::SessionObject;

/// An ordered set of processes: cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Group {
    members: Arc<Members>,
    /// The session that it was made from, if it was.
    session: Option<Arc<SessionObject>>,
}

/// Ranks `first`, `first + stride`, ... up to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// First rank.
    pub first: i32,
    /// The last rank is not beyond this one.
    pub last: i32,
    /// Distance, perhaps negative.
    pub stride: i32,
}

impl Group {
    /// These processes of COMM_WORLD, which are different, in this order.
    pub fn new(processes: impl IntoIterator<Item = u32>) -> Group {
        Group { members: Arc::new(Members::new(processes)), session: None }
    }

    /// These processes, of the same session.
    fn derived(&self, processes: impl IntoIterator<Item = u32>) -> Group {
        Group { session: self.session.clone(), ..Group::new(processes) }
    }

    /// The group of these members.
    pub(crate) fn of(members: Arc<Members>) -> Group {
        Group { members, session: None }
    }

    /// The same group, made from a session.
    #[must_use]
    pub(crate) fn made_from(self, session: Option<Arc<SessionObject>>) -> Group {
        Group { session, ..self }
    }

    /// The session that it was made from, if it was.
    pub(crate) fn session(&self) -> Option<&Arc<SessionObject>> {
        self.session.as_ref()
    }

    /// Ranks and processes.
    pub(crate) fn members(&self) -> &Arc<Members> {
        &self.members
    }

    /// How many processes.
    pub fn size(&self) -> i32 {
        self.members.len()
    }

    /// The rank of a process of COMM_WORLD.
    pub fn rank_of(&self, process: u32) -> Option<i32> {
        self.members.rank_of(process)
    }

    /// The processes in order, by their numbers in COMM_WORLD.
    pub fn processes(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.members.processes()
    }

    fn has(&self, process: u32) -> bool {
        self.members.rank_of(process).is_some()
    }

    /// `MPI_Group_compare`: `Ident` if members and order are the same, `Similar` if only the order differs.
    pub fn compare(&self, other: &Group) -> Comparison {
        if self.members.order() == other.members.order() {
            Comparison::Ident
        } else if self.size() == other.size() && self.processes().all(|process| other.has(process)) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }

    /// `MPI_Group_union`: the members of this group, then those of the other one that are not among them.
    pub fn union(&self, other: &Group) -> Group {
        let more = other.processes().filter(|&process| !self.has(process));
        self.derived(self.processes().chain(more))
    }

    /// `MPI_Group_intersection`: the members of this group that are in the other one, too.
    pub fn intersection(&self, other: &Group) -> Group {
        self.filtered(|_, process| other.has(process))
    }

    /// `MPI_Group_difference`: the members of this group that are not in the other one.
    pub fn difference(&self, other: &Group) -> Group {
        self.filtered(|_, process| !other.has(process))
    }

    fn filtered(&self, keep: impl Fn(usize, u32) -> bool) -> Group {
        let kept = self.processes().enumerate().filter(|&(rank, process)| keep(rank, process));
        self.derived(kept.map(|(_, process)| process))
    }

    /// `MPI_Group_incl`: the members of these ranks, in this order.
    ///
    /// # Errors
    /// Class RANK for a rank that is not in the group or comes twice.
    pub fn incl(&self, ranks: &[i32]) -> Result<Group> {
        self.marked(ranks.iter().copied())?;
        Ok(self.derived(ranks.iter().filter_map(|&rank| self.members.world(rank))))
    }

    /// `MPI_Group_excl`: all members but those of these ranks.
    ///
    /// # Errors
    /// Class RANK for a rank that is not in the group or comes twice.
    pub fn excl(&self, ranks: &[i32]) -> Result<Group> {
        let marks = self.marked(ranks.iter().copied())?;
        Ok(self.filtered(|rank, _| !marks[rank]))
    }

    /// `MPI_Group_range_incl`: the members of these ranges of ranks, in this order.
    ///
    /// # Errors
    /// Class ARG for a stride of zero or away from the last rank, RANK for a rank that is not in the group or
    /// comes twice.
    pub fn range_incl(&self, ranges: &[Range]) -> Result<Group> {
        self.incl(&self.ranks_of(ranges)?)
    }

    /// `MPI_Group_range_excl`: all members but those of these ranges of ranks.
    ///
    /// # Errors
    /// Class ARG for a stride of zero or away from the last rank, RANK for a rank that is not in the group or
    /// comes twice.
    pub fn range_excl(&self, ranges: &[Range]) -> Result<Group> {
        self.excl(&self.ranks_of(ranges)?)
    }

    /// `MPI_Group_translate_ranks`: the ranks that the members of `ranks` have in `other`: UNDEFINED for a
    /// process that is not there, PROC_NULL for PROC_NULL.
    ///
    /// # Errors
    /// Class RANK for a rank that is not in this group.
    pub fn translate(&self, ranks: &[i32], other: &Group) -> Result<Vec<i32>> {
        let translate = |&rank: &i32| match self.members.world(rank) {
            _ if rank == PROC_NULL => Ok(PROC_NULL),
            Some(process) => Ok(other.rank_of(process).unwrap_or(UNDEFINED)),
            None => Err(self.no_rank(rank)),
        };
        ranks.iter().map(translate).collect()
    }

    /// Which ranks are in the list, each at most once.
    fn marked(&self, ranks: impl Iterator<Item = i32>) -> Result<Vec<bool>> {
        let mut marks = vec![false; self.size() as usize];
        for rank in ranks {
            match marks.get_mut(rank as usize) {
                Some(mark) if !*mark => *mark = true,
                Some(_) => return Err(Class::RANK.error(format!("rank {rank} is named twice"))),
                None => return Err(self.no_rank(rank)),
            }
        }
        Ok(marks)
    }

    /// The ranks of the ranges, which are checked first: a range may name billions.
    fn ranks_of(&self, ranges: &[Range]) -> Result<Vec<i32>> {
        let mut ranks = Vec::new();
        for &Range { first, last, stride } in ranges {
            if stride == 0 {
                return Err(Class::ARG.error(format!("the range from {first} to {last} has the stride 0")));
            }
            let (first, last, stride) = (i64::from(first), i64::from(last), i64::from(stride));
            if (last - first) * stride.signum() < 0 {
                let text = format!("the range from {first} does not reach {last} by the stride {stride}");
                return Err(Class::ARG.error(text));
            }
            let steps = (last - first) / stride;
            for end in [first, first + steps * stride] {
                if !(0..i64::from(self.size())).contains(&end) {
                    return Err(self.no_rank(end as i32));
                }
            }
            ranks.extend((0..=steps).map(|step| (first + step * stride) as i32));
            if ranks.len() > self.size() as usize {
                return Err(Class::RANK.error("the ranges name a rank twice"));
            }
        }
        Ok(ranks)
    }

    #[cold]
    fn no_rank(&self, rank: i32) -> crate::error::Error {
        let rank = crate::shown::rank(rank);
        Class::RANK.error(format!("rank {rank} is not in a group of {} processes", self.size()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(first: i32, last: i32, stride: i32) -> Range {
        Range { first, last, stride }
    }

    fn processes(group: &Group) -> Vec<u32> {
        group.processes().collect()
    }

    #[test]
    fn the_standards_examples_of_ranges() {
        // MPI 5.0, section 7.3.2: ranges (6,7,1), (1,6,2), (0,9,4) of ranks a..j.
        let group = Group::new(0..10);
        let ranges = [range(6, 7, 1), range(1, 5, 2), range(0, 9, 4)];
        assert_eq!(processes(&group.range_incl(&ranges).unwrap()), [6, 7, 1, 3, 5, 0, 4, 8]);
        assert_eq!(processes(&group.range_excl(&ranges).unwrap()), [2, 9]);
        assert_eq!(processes(&group.range_incl(&[range(9, 0, -4)]).unwrap()), [9, 5, 1]);
    }

    #[test]
    fn wrong_ranks_are_refused() {
        let group = Group::new([3, 1, 2]);
        let class = |result: Result<Group>| result.unwrap_err().class();
        assert_eq!(class(group.incl(&[0, 3])), Class::RANK);
        assert_eq!(class(group.incl(&[-1])), Class::RANK);
        assert_eq!(class(group.excl(&[1, 1])), Class::RANK);
        assert_eq!(class(group.range_incl(&[range(0, 2, 0)])), Class::ARG);
        assert_eq!(class(group.range_incl(&[range(0, 2, -1)])), Class::ARG);
        assert_eq!(class(group.range_excl(&[range(2, 0, 1)])), Class::ARG);
        assert_eq!(class(group.range_incl(&[range(0, i32::MAX, 1)])), Class::RANK);
        assert_eq!(class(group.range_incl(&[range(0, 2, 1), range(2, 2, 1)])), Class::RANK);
        assert_eq!(group.translate(&[3], &group).unwrap_err().class(), Class::RANK);
    }

    #[test]
    fn set_operations_keep_the_order_of_the_first_group() {
        let (a, b) = (Group::new([5, 3, 1, 0]), Group::new([0, 2, 5]));
        assert_eq!(processes(&a.union(&b)), [5, 3, 1, 0, 2]);
        assert_eq!(processes(&a.intersection(&b)), [5, 0]);
        assert_eq!(processes(&a.difference(&b)), [3, 1]);
        assert_eq!(a.translate(&[0, PROC_NULL, 1, 3], &b).unwrap(), [2, PROC_NULL, UNDEFINED, 0]);
    }

    #[test]
    fn groups_compare_by_members_and_order() {
        let group = Group::new([4, 7]);
        assert_eq!(group.compare(&Group::new([4, 7])), Comparison::Ident);
        assert_eq!(group.compare(&Group::new([7, 4])), Comparison::Similar);
        assert_eq!(group.compare(&Group::new([4, 8])), Comparison::Unequal);
        assert_eq!(group.compare(&Group::default()), Comparison::Unequal);
    }
    /// Different processes: runs of any distance, some of them backwards, with gaps.
    fn lists() -> impl Strategy<Value = Vec<u32>> {
        let run = (0..400_u32, 1..5_u32, 1..60_u32, any::<bool>());
        proptest::collection::vec(run, 0..8).prop_map(|runs| {
            let mut list: Vec<u32> = Vec::new();
            for (first, step, len, falls) in runs {
                let mut run: Vec<u32> = (0..len).map(|place| first + place * step).collect();
                if falls {
                    run.reverse();
                }
                run.retain(|process| !list.contains(process));
                list.extend(run);
            }
            list
        })
    }

    fn group(list: &[u32]) -> Group {
        Group::new(list.iter().copied())
    }

    proptest! {
        #[test]
        fn operations_on_two_groups_do_what_they_do_on_lists((a, b) in (lists(), lists())) {
            let (one, other) = (group(&a), group(&b));
            let apart = |from: &[u32], others: &[u32], is_in: bool| -> Vec<u32> {
                from.iter().copied().filter(|process| others.contains(process) == is_in).collect()
            };
            prop_assert_eq!(processes(&one.union(&other)), [&a[..], &apart(&b, &a, false)].concat());
            prop_assert_eq!(processes(&one.intersection(&other)), apart(&a, &b, true));
            prop_assert_eq!(processes(&one.difference(&other)), apart(&a, &b, false));
            let ranks: Vec<i32> = (0..one.size()).collect();
            let rank = |process| b.iter().position(|known| known == process);
            let found = a.iter().map(|process| rank(process).map_or(UNDEFINED, |rank| rank as i32));
            prop_assert_eq!(one.translate(&ranks, &other).unwrap(), found.collect::<Vec<_>>());
            let mut sorted = [a.clone(), b.clone()];
            sorted.iter_mut().for_each(|list| list.sort_unstable());
            let compared = match () {
                () if a == b => Comparison::Ident,
                () if sorted[0] == sorted[1] => Comparison::Similar,
                () => Comparison::Unequal,
            };
            prop_assert_eq!(one.compare(&other), compared);
            prop_assert_eq!(group(&a).compare(&group(&sorted[0])) == Comparison::Ident, a == sorted[0]);
        }

        #[test]
        fn ranks_are_taken_and_left_out_as_in_lists(
            list in lists(),
            chosen in proptest::collection::vec(any::<proptest::sample::Index>(), 0..40),
            ends in (any::<proptest::sample::Index>(), any::<proptest::sample::Index>(), 1..9_i32),
        ) {
            prop_assume!(!list.is_empty());
            let mut ranks: Vec<i32> = chosen.iter().map(|index| index.index(list.len()) as i32).collect();
            ranks.sort_unstable();
            ranks.dedup();
            ranks.reverse();
            let of = |ranks: &[i32]| ranks.iter().map(|&rank| list[rank as usize]).collect::<Vec<u32>>();
            let without = |ranks: &[i32]| -> Vec<u32> {
                of(&(0..list.len() as i32).filter(|rank| !ranks.contains(rank)).collect::<Vec<_>>())
            };
            let group = group(&list);
            prop_assert_eq!(processes(&group.incl(&ranks).unwrap()), of(&ranks));
            prop_assert_eq!(processes(&group.excl(&ranks).unwrap()), without(&ranks));
            let [first, last] = [ends.0, ends.1].map(|index| index.index(list.len()) as i32);
            let stride = if first <= last { ends.2 } else { -ends.2 };
            let steps = (last - first) / stride;
            let named: Vec<i32> = (0..=steps).map(|step| first + step * stride).collect();
            let ranges = [range(first, last, stride)];
            prop_assert_eq!(processes(&group.range_incl(&ranges).unwrap()), of(&named));
            prop_assert_eq!(processes(&group.range_excl(&ranges).unwrap()), without(&named));
        }
    }
}
