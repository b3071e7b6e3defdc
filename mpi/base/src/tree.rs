//! The binomial tree of agreements: rank 0 is its root, and children are further away by a power of two.

/// Returns the children of a rank of this many, the nearest one first.
pub fn children(rank: i32, ranks: i32) -> Vec<i32> {
    let steps = (0..31).map(|bit| 1 << bit).take_while(|step| rank & step == 0);
    // The farthest rank of a tree of 2^31 - 1 is no child of rank 0.
    steps.map_while(|step| rank.checked_add(step)).take_while(|&child| child < ranks).collect()
}

/// Returns the parent of a rank other than 0.
pub fn parent(rank: i32) -> i32 {
    rank & (rank - 1)
}

/// Returns how many ranks the subtree of a rank other than 0 has: itself, and those that follow it.
pub fn below(rank: i32, ranks: i32) -> i32 {
    (rank & -rank).min(ranks - rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_are_ranks_in_a_row() {
        for ranks in 1..40 {
            let mut ends = vec![1; ranks as usize];
            for rank in (0..ranks).rev() {
                let mut end = rank + 1;
                for child in children(rank, ranks) {
                    assert_eq!((parent(child), child), (rank, end));
                    end += below(child, ranks);
                    assert_eq!(end, ends[child as usize]);
                }
                ends[rank as usize] = end;
            }
            assert_eq!(ends[0], ranks);
        }
        assert_eq!(children(0, i32::MAX).len(), 31);
    }
}
