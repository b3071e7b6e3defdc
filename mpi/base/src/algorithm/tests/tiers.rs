//! Boards of groups, between threads.

use super::boards::{OPERATIONS, look};
use super::types::{Reduction, memory, reductions};
use crate::algorithm::board::tiers::{Tiers, shape};
use crate::algorithm::operator::Operator;
use nmad_drivers::node::Segment as SharedMemory;

/// What rank `rank` has in operation `index`: elements are pairs of numbers.
fn data(index: usize, rank: usize) -> Box<[i32]> {
    let count = [2, 28, 30, 100, 512][(index + index / 5) % 5];
    (0..count).map(|k| (index * 1000 + rank * 100 + k) as i32).collect()
}

/// Does many operations as a rank.
fn run(tiers: &mut Tiers, (me, size): (usize, usize), operator: &Operator, sums: &[Box<[i32]>]) {
    for (index, sum) in sums.iter().enumerate() {
        let (mut own, root) = (data(index, me), (index * 7) % size);
        let mut into: Box<[i32]> = own.iter().map(|_| -1).collect();
        let untouched = into.clone();
        let operands = (operator, own.len() as i64 / 2);
        match (index * index + index / 3) % 5 {
            0 => tiers.barrier(&mut look).expect("nobody is lost"),
            1 => {
                tiers.bcast(root, &memory(&mut own), &mut look).expect("nobody is lost");
                assert_eq!(own, data(index, root), "bcast {index} at {me} of {size}");
            }
            2 => {
                let spots = (root, &memory(&mut own), &memory(&mut into));
                tiers.reduce(spots, operands, &mut look).expect("nobody is lost");
                assert_eq!(&into, if me == root { sum } else { &untouched }, "reduce {index} at {me}");
            }
            3 => {
                // In place.
                let own_memory = memory(&mut own);
                tiers.allreduce([&own_memory; 2], operands, &mut look).expect("nobody is lost");
                assert_eq!(&own, sum, "allreduce {index} at {me} of {size}");
            }
            _ => {
                let both = [&memory(&mut own), &memory(&mut into)];
                tiers.allreduce(both, operands, &mut look).expect("nobody is lost");
                assert_eq!(&into, sum, "allreduce {index} at {me} of {size}");
            }
        }
    }
}

#[test]
fn groups_and_leaders_combine_in_the_order_of_ranks_and_run_ahead() {
    // In an order, and without gaps.
    let is_fitting = |reduction: &Reduction| {
        !reduction.operator.is_commutative() && reduction.operator.datatype().is_contiguous()
    };
    let reduction = reductions().into_iter().find(is_fitting).expect("there is one");
    for size in [2, 5, 9, 13] {
        let sum = |index: usize| {
            let whole = reduction.over((0..size).map(|rank| data(index, rank).to_vec()));
            whole.expect("one rank at least").into()
        };
        let sums: Vec<Box<[i32]>> = (0..OPERATIONS).map(sum).collect();
        let (first, fd) = SharedMemory::create(Tiers::len(size)).expect("shared memory");
        let adopt = |_| SharedMemory::adopt(&fd, Tiers::len(size)).expect("the same");
        let views = std::iter::once(first).chain((1..size).map(adopt));
        let ranks: Vec<Tiers> = views.enumerate().map(|(me, view)| Tiers::new(view, size, me)).collect();
        std::thread::scope(|scope| {
            for (me, mut tiers) in ranks.into_iter().enumerate() {
                let (sums, operator) = (&sums, &reduction.operator);
                scope.spawn(move || run(&mut tiers, (me, size), operator, sums));
            }
        });
    }
}

#[test]
fn groups_are_about_as_many_as_their_ranks() {
    assert_eq!([33, 48, 64, 96, 128].map(shape), [[8, 5], [8, 6], [8, 8], [16, 6], [16, 8]]);
}
