//! The members of a group, in order: which process has which rank.

/// Processes by rank, and ranks by process; processes have the numbers that they have in COMM_WORLD.
#[derive(Debug, Default)]
pub(crate) struct Members {
    world: Box<[u32]>,
    ranks: Ranks,
}

/// How the rank of a process is found.
#[derive(Debug)]
enum Ranks {
    /// Processes at equal distances: rank r is process `first + r * step`.
    Regular { first: u32, step: u32 },
    /// Ranks by process, -1 for those that are not in the group.
    Dense(Box<[i32]>),
    /// Processes in order, and their ranks: for few processes of many.
    Sorted(Box<[(u32, i32)]>),
}

impl Default for Ranks {
    fn default() -> Self {
        Ranks::Regular { first: 0, step: 1 }
    }
}

/// A dense table may have this many entries for each member.
const DENSE: usize = 16;

impl Ranks {
    fn new(world: &[u32]) -> Ranks {
        let (first, second) = match world {
            [] => (0, 1),
            [only] => (*only, only.wrapping_add(1)),
            [first, second, ..] => (*first, *second),
        };
        if second > first && world.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(second - first))
        {
            return Ranks::Regular { first, step: second - first };
        }
        let end = world.iter().max().map_or(0, |&last| last as usize + 1);
        if end <= DENSE * world.len() {
            let mut ranks = vec![-1; end];
            world.iter().enumerate().for_each(|(rank, &process)| ranks[process as usize] = rank as i32);
            return Ranks::Dense(ranks.into());
        }
        let mut sorted: Box<[_]> = world.iter().zip(0..).map(|(&process, rank)| (process, rank)).collect();
        sorted.sort_unstable();
        Ranks::Sorted(sorted)
    }
}

impl Members {
    /// These processes, in this order. They are different.
    pub(crate) fn new(world: impl Into<Box<[u32]>>) -> Members {
        let world: Box<[u32]> = world.into();
        let ranks = Ranks::new(&world);
        Members { world, ranks }
    }

    pub(crate) fn len(&self) -> i32 {
        self.world.len() as i32
    }

    pub(crate) fn processes(&self) -> &[u32] {
        &self.world
    }

    /// The process of a rank.
    #[inline]
    pub(crate) fn world(&self, rank: i32) -> Option<u32> {
        // A negative rank is beyond every length.
        self.world.get(rank as usize).copied()
    }

    /// The rank of a process.
    #[inline]
    pub(crate) fn rank_of(&self, process: u32) -> Option<i32> {
        match &self.ranks {
            Ranks::Regular { first, step: 1 } => self.rank(process.checked_sub(*first)?),
            Ranks::Regular { first, step } => {
                let distance = process.checked_sub(*first)?;
                if distance % step == 0 { self.rank(distance / step) } else { None }
            }
            Ranks::Dense(ranks) => ranks.get(process as usize).copied().filter(|&rank| rank >= 0),
            Ranks::Sorted(sorted) => {
                let place = sorted.binary_search_by_key(&process, |&(process, _)| process).ok()?;
                Some(sorted[place].1)
            }
        }
    }

    fn rank(&self, rank: u32) -> Option<i32> {
        ((rank as usize) < self.world.len()).then_some(rank as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for world in worlds {
            let members = Members::new(world.clone());
            for (rank, &process) in world.iter().enumerate() {
                assert_eq!(members.world(rank as i32), Some(process));
                assert_eq!(members.rank_of(process), Some(rank as i32));
            }
            assert_eq!((members.world(world.len() as i32), members.world(-1)), (None, None));
            for process in (0..20).filter(|process| !world.contains(process)) {
                assert_eq!(members.rank_of(process), None, "{process} of {world:?}");
            }
        }
    }
}
