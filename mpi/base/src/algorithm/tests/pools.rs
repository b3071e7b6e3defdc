//! The pool, between threads: one reduction after the other, of all lengths and with the result on any ranks.

use super::types::{Reduction, memory, numbers, reductions};
use crate::algorithm::pool::{Pool, Sums, Wanted};
use nmad_drivers::node::Segment as SharedMemory;

/// Elements: fewer than ranks, some, and more than go through at a time.
const COUNTS: [i64; 5] = [1, 3, 1000, 20_011, 140_011];

/// A reduction of the test; on all ranks the same but for the rank's number.
struct Case<'a> {
    reduction: &'a Reduction,
    count: i64,
    wanted: Wanted,
    in_place: bool,
}

impl Case<'_> {
    /// The parts of the ranks: of different lengths, and not all of them have one.
    fn bounds(&self, size: usize) -> Vec<i64> {
        let end = |rank: usize| match (self.wanted, rank) {
            (Wanted::Parts, 0) => 0,
            (Wanted::Parts, 1) => self.count / 3,
            _ => self.count * rank as i64 / size as i64,
        };
        (0..=size).map(|rank| if rank == size { self.count } else { end(rank) }).collect()
    }

    fn run(&self, pool: &mut Pool, (me, size): (usize, usize), expected: &[i32]) {
        let bounds = self.bounds(size);
        let part = 2 * bounds[me] as usize..2 * bounds[me + 1] as usize;
        let expected = match self.wanted {
            Wanted::Parts => &expected[part],
            Wanted::AtRoot(root) if root != me => &[],
            Wanted::AtRoot(_) | Wanted::Everywhere => expected,
        };
        let mut own = numbers(me, self.count);
        let mut result = vec![-1; expected.len()];
        let operands = memory(&mut own);
        let into =
            if self.in_place { operands.slice(0, 4 * expected.len() as u64) } else { memory(&mut result) };
        let sums = Sums { operator: &self.reduction.operator, bounds: &bounds };
        let mut look = |_: &SharedMemory, _| {
            std::thread::yield_now();
            Ok(())
        };
        assert_eq!(pool.combine(&operands, &sums, (self.wanted, &into), &mut look), Ok(()));
        let result = if self.in_place { &own[..expected.len()] } else { &result };
        assert!(result == expected, "rank {me} of {size}: {} elements, {:?}", self.count, self.wanted);
    }
}

#[test]
fn long_vectors_are_combined_in_the_order_of_ranks() {
    let plain: Vec<Reduction> =
        reductions().into_iter().filter(|r| r.operator.datatype().is_contiguous()).collect();
    assert!(plain.iter().any(|reduction| !reduction.operator.is_commutative()));
    for size in 1..=5 {
        let (first, fd) = SharedMemory::create(Pool::len(size)).expect("shared memory");
        let adopt = |_| SharedMemory::adopt(&fd, Pool::len(size)).expect("the same");
        let views = std::iter::once(first).chain((1..size).map(adopt));
        let mut pools: Vec<Pool> = views.enumerate().map(|(me, view)| Pool::new(view, size, me)).collect();
        for (index, count) in COUNTS.into_iter().enumerate() {
            for wanted in [Wanted::Everywhere, Wanted::AtRoot(index % size), Wanted::Parts] {
                for in_place in [false, true] {
                    let case = Case { reduction: &plain[index % plain.len()], count, wanted, in_place };
                    let expected =
                        case.reduction.over((0..size).map(|rank| numbers(rank, count))).expect("a rank");
                    std::thread::scope(|scope| {
                        for (me, pool) in pools.iter_mut().enumerate() {
                            let (case, expected) = (&case, &expected);
                            scope.spawn(move || case.run(pool, (me, size), expected));
                        }
                    });
                }
            }
        }
    }
}
