//! The members of a group, in order: which process has which rank.

use nmad_mpi_base::sequence::{Sequence, Span};

/// Processes by rank, and ranks by process; processes have the numbers that they have in COMM_WORLD. Groups
/// whose processes follow a pattern take little memory, however many there are.
#[derive(Debug, Default)]
pub(crate) struct Members {
    world: Sequence,
    ranks: Ranks,
}

/// How the rank of a process is found.
#[derive(Debug, Default)]
enum Ranks {
    /// All processes are one run.
    #[default]
    Regular,
    /// Runs in the order of their least processes.
    Runs(Box<[Part]>),
    /// Ranks by process, -1 for those that are not in the group.
    Dense(Box<[i32]>),
    /// Processes in order, and their ranks: for few processes of many.
    Sorted(Box<[(u32, i32)]>),
}

/// A run of processes.
#[derive(Debug)]
struct Part {
    least: u32,
    /// The greatest process of this run and of all runs before it.
    reach: u32,
    span: Span,
}

/// A dense table may have this many entries for each member.
const DENSE: usize = 16;
/// A search looks at no more than this many runs after the first; several are needed if runs interleave.
const BESIDE: usize = 8;

impl Ranks {
    fn new(world: &Sequence) -> Ranks {
        if world.is_empty() || world.only().is_some() {
            return Ranks::Regular;
        }
        if let Some(parts) = parts(world) {
            return Ranks::Runs(parts);
        }
        let end = world.iter().max().map_or(0, |last| last as usize + 1);
        if end <= DENSE * world.len() as usize {
            let mut ranks = vec![-1; end];
            world.iter().zip(0..).for_each(|(process, rank)| ranks[process as usize] = rank);
            return Ranks::Dense(ranks.into());
        }
        let mut sorted: Box<[_]> = world.iter().zip(0..).collect();
        sorted.sort_unstable();
        Ranks::Sorted(sorted)
    }
}

/// Returns the runs for a search; none if more than [`BESIDE`] of them interleave, or if a list is stored.
fn parts(world: &Sequence) -> Option<Box<[Part]>> {
    let part = |span: Span| Part { least: span.ends().0, reach: span.ends().1, span };
    let mut parts: Box<[Part]> = world.spans().map(part).collect();
    parts.sort_unstable_by_key(|part| part.least);
    for place in 1..parts.len() {
        parts[place].reach = parts[place].reach.max(parts[place - 1].reach);
        let beyond = place.checked_sub(BESIDE + 1);
        if beyond.is_some_and(|beyond| parts[beyond].reach >= parts[place].least) {
            return None;
        }
    }
    (!parts.is_empty()).then_some(parts)
}

impl Members {
    /// These processes, in this order. They are different.
    pub(crate) fn new(world: impl IntoIterator<Item = u32>) -> Members {
        Members::of(world.into_iter().collect())
    }

    /// The first `size` processes of COMM_WORLD.
    pub(crate) fn first(size: u32) -> Members {
        Members::of((0..size).into())
    }

    fn of(world: Sequence) -> Members {
        let ranks = Ranks::new(&world);
        Members { world, ranks }
    }

    pub(crate) fn len(&self) -> i32 {
        self.world.len() as i32
    }

    /// The processes in the order of ranks.
    pub(crate) fn processes(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.world.iter()
    }

    /// The processes in the order of ranks, to compare with those of other groups.
    pub(crate) fn order(&self) -> &Sequence {
        &self.world
    }

    /// The process of a rank.
    #[inline]
    pub(crate) fn world(&self, rank: i32) -> Option<u32> {
        // A negative rank is beyond every length.
        self.world.get(rank as u32)
    }

    /// The rank of a process.
    #[inline]
    pub(crate) fn rank_of(&self, process: u32) -> Option<i32> {
        match &self.ranks {
            Ranks::Regular => self.world.only()?.place_of(process).map(|rank| rank as i32),
            Ranks::Runs(parts) => {
                let before = &parts[..parts.partition_point(|part| part.least <= process)];
                let near = before.iter().rev().take_while(|part| part.reach >= process);
                near.filter_map(|part| part.span.place_of(process)).next().map(|rank| rank as i32)
            }
            Ranks::Dense(ranks) => ranks.get(process as usize).copied().filter(|&rank| rank >= 0),
            Ranks::Sorted(sorted) => {
                let place = sorted.binary_search_by_key(&process, |&(process, _)| process).ok()?;
                Some(sorted[place].1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(world: &[u32], others: impl Iterator<Item = u32>) {
        let members = Members::new(world.iter().copied());
        assert_eq!(members.processes().collect::<Vec<_>>(), world);
        for (rank, &process) in world.iter().enumerate() {
            assert_eq!(members.world(rank as i32), Some(process));
            assert_eq!(members.rank_of(process), Some(rank as i32));
        }
        assert_eq!((members.world(world.len() as i32), members.world(-1)), (None, None));
        for process in others.filter(|process| !world.contains(process)) {
            assert_eq!(members.rank_of(process), None, "{process} of {world:?}");
        }
    }

    #[test]
    fn ranks_and_processes_are_found_both_ways() {
        let worlds = [
            vec![],
            vec![7],
            vec![u32::MAX],
            vec![0, 1, 2],
            vec![3, 5, 7],
            vec![4, 2, 9],
            vec![5, 5000, 1_000_000],
            vec![2, 1, 0],
        ];
        worlds.iter().for_each(|world| check(world, 0..20));
        // Runs that lie between each other, few and many.
        for classes in [2, 3, 8, 40] {
            let world: Vec<u32> = (0..classes).rev().flat_map(|class| (class..800).step_by(41)).collect();
            check(&world, 0..900);
        }
    }

    proptest! {
        #[test]
        fn groups_of_any_runs_are_found_both_ways(
            runs in proptest::collection::vec((0..3000_u32, 1..5_u32, 1..50_u32, any::<bool>()), 0..20)
        ) {
            let mut world: Vec<u32> = Vec::new();
            for (first, step, len, falls) in runs {
                let mut run: Vec<u32> = (0..len).map(|place| first + place * step).collect();
                if falls {
                    run.reverse();
                }
                run.retain(|process| !world.contains(process));
                world.extend(run);
            }
            check(&world, 0..3300);
        }
    }
}
