//! The binomial tree: its shape, seen from one rank.

/// A rank's place in the binomial tree of which rank 0 is the root. The subtree of a rank is a row of ranks
/// that begins with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binomial {
    /// The rank above; none at the root.
    pub parent: Option<usize>,
    /// The ranks below, and how many ranks each subtree has: the nearest first.
    pub children: Vec<(usize, usize)>,
    /// Ranks of our own subtree.
    pub subtree: usize,
}

impl Binomial {
    /// The place of `rank` in a tree of `size` ranks.
    pub fn of(size: usize, rank: usize) -> Binomial {
        let reach = if rank == 0 { size.next_power_of_two() } else { rank & rank.wrapping_neg() };
        let parent = (rank > 0).then(|| rank - reach);
        let steps = std::iter::successors(Some(1), |step| Some(step * 2)).take_while(|&step| step < reach);
        let children = steps
            .map(|step| (rank + step, step))
            .take_while(|&(child, _)| child < size)
            .map(|(child, step)| (child, step.min(size - child)))
            .collect();
        Binomial { parent, children, subtree: reach.min(size - rank) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_parent_and_subtrees_are_rows() {
        for size in 1..40 {
            let trees: Vec<Binomial> = (0..size).map(|rank| Binomial::of(size, rank)).collect();
            assert_eq!(trees[0].subtree, size);
            for (rank, tree) in trees.iter().enumerate() {
                let covered: usize = tree.children.iter().map(|(_, ranks)| ranks).sum();
                assert_eq!(covered + 1, tree.subtree, "{rank} of {size}");
                for &(child, ranks) in &tree.children {
                    assert_eq!((trees[child].parent, trees[child].subtree), (Some(rank), ranks));
                }
            }
        }
    }
}
