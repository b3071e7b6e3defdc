//! Collectives that combine data.

use super::types::{Reduction, numbers, reductions, sum};
use super::world::{Buffers, Case, Memory, SIZES, is_tried_long, try_all};
use crate::algorithm::allreduce::Allreduce;
use crate::algorithm::operands::Operands;
use crate::algorithm::place::{Buffer, Spot};
use crate::algorithm::reduce::Reduce;
use crate::algorithm::reduce_scatter::ReduceScatter;
use crate::algorithm::scan::Scan;

const COUNTS: [i64; 4] = [0, 1, 3, 23];
const LONG: i64 = 70_001;
const FEW: [usize; 4] = [2, 3, 4, 7];

const SEND: Spot = Spot::start(Buffer::Send);
const RECV: Spot = Spot::start(Buffer::Recv);

/// Operands of all ranks, in the send buffers or in place; the receive buffers are otherwise untouched.
fn before(size: usize, count: i64, reduction: &Reduction, in_place: impl Fn(usize) -> bool) -> Buffers {
    let datatype = reduction.operator.datatype();
    let own = |rank| Memory::filled(&numbers(rank, count), datatype);
    Buffers {
        send: (0..size).map(own).collect(),
        recv: (0..size)
            .map(|rank| if in_place(rank) { own(rank) } else { Memory::of(count, datatype) })
            .collect(),
    }
}

fn reduce(sizes: &[usize], count: i64, reduction: &Reduction, root: fn(usize) -> usize, in_place: bool) {
    try_all(sizes, Some(&reduction.operator), |size| {
        let root = root(size);
        let before = before(size, count, reduction, |rank| in_place && rank == root);
        let mut after = before.clone();
        let result = reduction.over((0..size).map(|rank| numbers(rank, count))).expect("one rank at least");
        after.recv[root].put(0, &result, reduction.operator.datatype());
        let operands = Operands { operator: reduction.operator.clone(), count };
        Case {
            problem: Box::new(move |me| Reduce {
                from: if in_place && me == root { RECV } else { SEND },
                into: (me == root).then_some(RECV),
                operands: operands.clone(),
                root,
            }),
            before,
            after,
        }
    });
}

#[test]
fn reduce_combines_in_the_order_of_ranks() {
    for reduction in reductions() {
        for in_place in [false, true] {
            COUNTS.iter().for_each(|&count| reduce(&SIZES, count, &reduction, |size| size / 2, in_place));
            reduce(&SIZES, 5, &reduction, |_| 0, in_place);
            reduce(&SIZES, 5, &reduction, |size| size - 1, in_place);
            if is_tried_long(reduction.operator.datatype(), in_place) {
                reduce(&FEW, LONG, &reduction, |_| 0, in_place);
            }
        }
    }
}

fn allreduce(sizes: &[usize], count: i64, reduction: &Reduction, in_place: bool) {
    try_all(sizes, Some(&reduction.operator), |size| {
        let before = before(size, count, reduction, |_| in_place);
        let mut after = before.clone();
        let result = reduction.over((0..size).map(|rank| numbers(rank, count))).expect("one rank at least");
        after.recv.iter_mut().for_each(|memory| memory.put(0, &result, reduction.operator.datatype()));
        let operands = Operands { operator: reduction.operator.clone(), count };
        Case {
            problem: Box::new(move |_| Allreduce {
                from: if in_place { RECV } else { SEND },
                into: RECV,
                operands: operands.clone(),
            }),
            before,
            after,
        }
    });
}

#[test]
fn allreduce_gives_all_the_same_result() {
    for reduction in reductions() {
        for in_place in [false, true] {
            COUNTS.iter().for_each(|&count| allreduce(&SIZES, count, &reduction, in_place));
            if is_tried_long(reduction.operator.datatype(), in_place) {
                allreduce(&FEW, LONG, &reduction, in_place);
            }
        }
    }
}

#[test]
fn allreduce_takes_the_operators_of_the_standard() {
    let operator = sum();
    try_all(&SIZES, Some(&operator), |size| {
        let datatype = operator.datatype();
        let own = |rank: usize| Memory::filled(&[rank as i32, 10, -3], datatype);
        let total = (0..size as i32).sum();
        let send: Vec<Memory> = (0..size).map(own).collect();
        let result = Memory::filled(&[total, 10 * size as i32, -3 * size as i32], datatype);
        let operands = Operands { operator: operator.clone(), count: 3 };
        Case {
            problem: Box::new(move |_| Allreduce { from: SEND, into: RECV, operands: operands.clone() }),
            before: Buffers { send: send.clone(), recv: vec![Memory::of(3, datatype); size] },
            after: Buffers { send, recv: vec![result; size] },
        }
    });
}

fn reduce_scatter(sizes: &[usize], reduction: &Reduction, part: fn(usize) -> i64, in_place: bool) {
    try_all(sizes, Some(&reduction.operator), |size| {
        let ends = (0..size).scan(0, |end, rank| {
            *end += part(rank);
            Some(*end)
        });
        let bounds: Box<[i64]> = std::iter::once(0).chain(ends).collect();
        let count = bounds[size];
        let before = before(size, count, reduction, |_| in_place);
        let mut after = before.clone();
        let all = reduction.over((0..size).map(|rank| numbers(rank, count))).expect("one rank at least");
        for (rank, memory) in after.recv.iter_mut().enumerate() {
            let own = &all[2 * bounds[rank] as usize..2 * bounds[rank + 1] as usize];
            memory.put(0, own, reduction.operator.datatype());
        }
        let operands = Operands { operator: reduction.operator.clone(), count };
        Case {
            problem: Box::new(move |_| ReduceScatter {
                from: if in_place { RECV } else { SEND },
                into: RECV,
                operands: operands.clone(),
                bounds: bounds.clone(),
            }),
            before,
            after,
        }
    });
}

#[test]
fn reduce_scatter_gives_each_its_part() {
    for reduction in reductions() {
        for in_place in [false, true] {
            reduce_scatter(&SIZES, &reduction, |_| 3, in_place);
            reduce_scatter(&SIZES, &reduction, |_| 0, in_place);
            reduce_scatter(&SIZES, &reduction, |rank| (rank as i64 * 3) % 4, in_place);
        }
    }
}

/// With two levels, a node combines parts that are long for the ranks of one node after the other.
#[test]
fn reduce_scatter_gives_each_its_long_part() {
    for in_place in [false, true] {
        reduce_scatter(&[6, 9], &reductions()[0], |_| 20_000, in_place);
    }
}

fn scan(count: i64, reduction: &Reduction, in_place: bool, is_exclusive: bool) {
    try_all(&SIZES, Some(&reduction.operator), |size| {
        let before = before(size, count, reduction, |_| in_place);
        let mut after = before.clone();
        for (rank, memory) in after.recv.iter_mut().enumerate() {
            let ranks = 0..if is_exclusive { rank } else { rank + 1 };
            if let Some(result) = reduction.over(ranks.map(|rank| numbers(rank, count))) {
                memory.put(0, &result, reduction.operator.datatype());
            }
        }
        let operands = Operands { operator: reduction.operator.clone(), count };
        Case {
            problem: Box::new(move |_| Scan {
                from: if in_place { RECV } else { SEND },
                into: RECV,
                operands: operands.clone(),
                is_exclusive,
            }),
            before,
            after,
        }
    });
}

#[test]
fn scans_combine_what_is_before() {
    for reduction in reductions() {
        for count in COUNTS {
            for (in_place, is_exclusive) in [(false, false), (false, true), (true, false), (true, true)] {
                scan(count, &reduction, in_place, is_exclusive);
            }
        }
    }
}
