//! The board, between threads: any sequence of operations, more of them than a rank has slots.

use super::types::{reductions, sum};
use crate::algorithm::board::Board;
use crate::algorithm::operator::Operator;
use crate::datatype::Datatype;
use crate::memory::contiguous;
use newmadeleine::{Segments, SharedMemory};

/// Operations of one run: several times round the ring.
const OPERATIONS: usize = 400;

fn memory(data: &mut [i32]) -> Segments {
    contiguous(data.as_mut_ptr().cast(), size_of_val(data))
}

/// What rank `rank` has in operation `index`.
fn datum(index: usize, rank: usize) -> i32 {
    (index * 100 + rank) as i32
}

/// A rank of the test: does each operation, and compares.
struct Rank {
    board: Board,
    me: usize,
    size: usize,
}

impl Rank {
    fn run(&mut self, seed: usize, operator: &Operator) {
        for index in 0..OPERATIONS {
            // The same choice on all ranks; some wait a little before some operations.
            let choice = (index * 7 + seed * 13 + index * index) % 8;
            for _ in 0..(index * 31 + self.me * 17) % 5 {
                std::thread::yield_now();
            }
            self.operation(choice, index, operator);
        }
    }

    fn operation(&mut self, choice: usize, index: usize, operator: &Operator) {
        let (me, size, root) = (self.me, self.size, index % self.size);
        let mut own = [datum(index, me)];
        let mut all = vec![-1; size];
        let everybody: Vec<i32> = (0..size).map(|rank| datum(index, rank)).collect();
        let total = |ranks: std::ops::Range<usize>| ranks.map(|rank| datum(index, rank)).sum::<i32>();
        let own_memory = memory(&mut own);
        let place = memory(&mut all);
        let block = |rank: usize| Ok(place.slice(4 * rank as u64, 4));
        let mut look = || {
            std::thread::yield_now();
            Ok(())
        };
        let (done, expected) = match choice {
            0 => (self.board.barrier(&mut look), vec![-1; size]),
            1 => (self.board.spread(root, &own_memory, (0, &own_memory), &mut look), vec![-1; size]),
            2 => (self.board.exchange(&own_memory, 0, block, &mut look), everybody),
            3 => {
                let done = self.board.collect(root, &own_memory, block, &mut look);
                (done, if me == root { everybody } else { vec![-1; size] })
            }
            4 | 5 => {
                let done =
                    self.board.combine_all(&own_memory, (operator, 0..1), &place.slice(0, 4), &mut look);
                (done, vec![total(0..size)])
            }
            6 => {
                let ranks = if me == root { 0..size } else { 0..0 };
                let done =
                    self.board.combine_some(&own_memory, ranks, (operator, 1), &place.slice(0, 4), &mut look);
                (done, vec![if me == root { total(0..size) } else { -1 }])
            }
            _ => {
                let done =
                    self.board.combine_some(&own_memory, 0..me, (operator, 1), &place.slice(0, 4), &mut look);
                (done, vec![if me > 0 { total(0..me) } else { -1 }])
            }
        };
        assert_eq!(done, Ok(()));
        assert!(all.starts_with(&expected), "operation {index} ({choice}): {all:?}, not {expected:?}");
        assert_eq!(own[0], datum(index, if choice == 1 { root } else { me }), "operation {index}");
    }
}

#[test]
fn posts_are_seen_by_all_and_slots_are_used_again_in_time() {
    let operator = sum();
    for size in 1..=5 {
        let (first, fd) = SharedMemory::create(Board::len(size)).expect("shared memory");
        let mut views: Vec<SharedMemory> =
            (1..size).map(|_| SharedMemory::adopt(&fd, Board::len(size)).expect("the same")).collect();
        views.push(first);
        std::thread::scope(|scope| {
            for (me, view) in views.into_iter().enumerate() {
                let operator = &operator;
                let mut rank = Rank { board: Board::new(view, size, me), me, size };
                scope.spawn(move || rank.run(size, operator));
            }
        });
    }
}

#[test]
fn operands_are_combined_in_the_order_of_ranks() {
    let ordered = reductions().into_iter().find(|r| !r.operator.is_commutative()).expect("there is one");
    let datatype: &Datatype = ordered.operator.datatype();
    assert!(datatype.is_contiguous());
    let size = 4;
    let (first, fd) = SharedMemory::create(Board::len(size)).expect("shared memory");
    let adopt = |_| SharedMemory::adopt(&fd, Board::len(size)).expect("the same");
    let views = std::iter::once(first).chain((1..size).map(adopt));
    let expected = ordered.over((0..size).map(|rank| super::types::numbers(rank, 1))).expect("four ranks");
    std::thread::scope(|scope| {
        for (me, view) in views.enumerate() {
            let (operator, expected) = (&ordered.operator, &expected);
            scope.spawn(move || {
                let (mut own, mut result) = (super::types::numbers(me, 1), vec![0; 2]);
                let (own, into) = (memory(&mut own), memory(&mut result));
                let done =
                    Board::new(view, size, me).combine_all(&own, (operator, 0..1), &into, &mut || Ok(()));
                assert_eq!((done, result), (Ok(()), expected.clone()));
            });
        }
    });
}

/// Bytes that rank `from` has for rank `to` in operation `index`: now and then more than a slot takes.
fn part_len(index: usize, from: usize, to: usize, size: usize) -> usize {
    match index % 16 {
        9 | 10 if from == index % size => 1500,
        _ => (index * 5 + from * 3 + to * 7) % 90,
    }
}

#[test]
fn parts_of_all_lengths_are_exchanged_by_all_or_none() {
    for size in 1..=4 {
        let (first, fd) = SharedMemory::create(Board::len(size)).expect("shared memory");
        let adopt = |_| SharedMemory::adopt(&fd, Board::len(size)).expect("the same");
        let views = std::iter::once(first).chain((1..size).map(adopt));
        let answers: Vec<Vec<bool>> = std::thread::scope(|scope| {
            let run = |(me, view)| scope.spawn(move || exchange_parts(Board::new(view, size, me), me, size));
            let threads: Vec<_> = views.enumerate().map(run).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(answers.iter().all(|of| *of == answers[0]), "all ranks alike");
        let count = answers[0].iter().filter(|answer| **answer).count();
        let most = if size == 1 { OPERATIONS } else { OPERATIONS - 2 * OPERATIONS / 16 };
        assert!((OPERATIONS / 2..=most).contains(&count), "{count} of {OPERATIONS}, {size} ranks");
    }
}

/// What the board has answered.
fn exchange_parts(mut board: Board, me: usize, size: usize) -> Vec<bool> {
    let content = |index: usize, from: usize, to: usize| (index + 10 * from + 100 * to) as u8;
    let mut look = || {
        std::thread::yield_now();
        Ok(())
    };
    let mut exchange = |index: usize| {
        let mut own: Vec<Vec<u8>> =
            (0..size).map(|to| vec![content(index, me, to); part_len(index, me, to, size)]).collect();
        let mut all: Vec<Vec<u8>> = (0..size).map(|from| vec![0; part_len(index, from, me, size)]).collect();
        let memory = |part: &mut Vec<u8>| contiguous(part.as_mut_ptr().cast(), part.len());
        let out: Vec<Segments> = own.iter_mut().map(memory).collect();
        let into: Vec<Segments> = all.iter_mut().map(memory).collect();
        let done = board
            .parts(|rank| Ok(out[rank].clone()), |rank| Ok(into[rank].clone()), &mut look)
            .expect("valid");
        for (from, part) in all.iter().enumerate() {
            let expected = if done { content(index, from, me) } else { 0 };
            assert!(part.iter().all(|byte| *byte == expected), "operation {index}, from {from}");
        }
        board.barrier(&mut look).expect("valid");
        done
    };
    (0..OPERATIONS).map(&mut exchange).collect()
}

#[test]
fn a_part_that_is_longer_than_expected_is_an_error() {
    let (memory, _) = SharedMemory::create(Board::len(1)).expect("shared memory");
    let (mut from, mut into) = ([7u8; 8], [0u8; 4]);
    let [from, into] = [&mut from[..], &mut into].map(|b| contiguous(b.as_mut_ptr().cast(), b.len()));
    let mut board = Board::new(memory, 1, 0);
    let done = board.parts(|_| Ok(from.clone()), |_| Ok(into.clone()), &mut || Ok(()));
    assert_eq!(done.map_err(|error| error.class()), Err(crate::error::Class::TRUNCATE));
}
