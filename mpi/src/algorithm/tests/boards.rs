//! The board, between threads: any sequence of operations, more of them than a rank has slots.

use super::types::{reductions, sum};
use crate::algorithm::board::{Board, Flag, Turn};
use crate::algorithm::operator::Operator;
use crate::datatype::Datatype;
use crate::memory::contiguous;
use newmadeleine::{Segments, SharedMemory};
use std::sync::atomic::Ordering;

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

/// An operation under way, and its memory.
struct Open {
    index: usize,
    choice: usize,
    own: Box<[i32]>,
    all: Box<[i32]>,
    ended: Option<Flag>,
}

impl Rank {
    fn run(&mut self, seed: usize, operator: &Operator) {
        let mut later = Vec::new();
        for index in 0..OPERATIONS {
            // The same choice on all ranks; some wait a little before some operations.
            let choice = (index * 7 + seed * 13 + index * index) % 7;
            for _ in 0..(index * 31 + self.me * 17) % 5 {
                std::thread::yield_now();
            }
            // Now and then many in a row, more than there are slots.
            let is_later = (index / 9 + seed).is_multiple_of(3) || index.is_multiple_of(5);
            later.extend(Some(self.begin(choice, index, operator, is_later)));
            later = self.check_ended(later);
        }
        while !later.is_empty() {
            std::thread::yield_now();
            self.board.go_on();
            later = self.check_ended(later);
        }
    }

    /// Begins an operation, or does it to its end.
    fn begin(&mut self, choice: usize, index: usize, operator: &Operator, is_later: bool) -> Open {
        let own = Box::new([datum(index, self.me)]);
        let mut open = Open { index, choice, own, all: vec![-1; self.size].into(), ended: None };
        let turn = self.turn(&mut open, operator);
        if is_later {
            open.ended = Some(self.board.start(turn));
        } else {
            let mut look = || {
                std::thread::yield_now();
                Ok(())
            };
            assert_eq!(self.board.run(&turn, &mut look), Ok(()));
        }
        open
    }

    fn root(&self, index: usize) -> usize {
        index % self.size
    }

    /// The ranks whose operands are combined for us.
    fn ranks(&self, choice: usize, index: usize) -> std::ops::Range<usize> {
        match choice {
            4 => 0..self.size,
            5 if self.me == self.root(index) => 0..self.size,
            5 => 0..0,
            _ => 0..self.me,
        }
    }

    fn turn<'a>(&self, open: &mut Open, operator: &'a Operator) -> Turn<'a> {
        let (me, size, root) = (self.me, self.size, self.root(open.index));
        let (own, into) = (memory(&mut open.own), memory(&mut open.all));
        match open.choice {
            0 => Turn::barrier(size),
            1 if me == root => Turn::spread(root, Some(own), (0, Segments::empty())),
            1 => Turn::spread(root, None, (0, own)),
            2 => Turn::exchange(size, own, 0, 4, into),
            3 => Turn::collect(size, own, 4, (me == root).then_some(into)),
            choice => Turn::combine(own, self.ranks(choice, open.index), (operator, 0..1), into.slice(0, 4)),
        }
    }

    /// Compares those that have ended; the others.
    fn check_ended(&self, open: Vec<Open>) -> Vec<Open> {
        let has_ended = |one: &Open| one.ended.as_ref().is_none_or(|ended| ended.load(Ordering::Acquire));
        let (ended, left): (Vec<Open>, Vec<Open>) = open.into_iter().partition(has_ended);
        ended.iter().for_each(|one| self.check(one));
        left
    }

    fn check(&self, open: &Open) {
        let (me, size, index) = (self.me, self.size, open.index);
        let root = self.root(index);
        let data = |ranks: std::ops::Range<usize>| ranks.map(|rank| datum(index, rank));
        let nothing = vec![-1; size];
        let expected = match open.choice {
            2 => data(0..size).collect(),
            3 if me == root => data(0..size).collect(),
            0..=3 => nothing,
            choice => match self.ranks(choice, index) {
                ranks if ranks.is_empty() => nothing,
                ranks => vec![data(ranks).sum::<i32>()],
            },
        };
        assert!(
            open.all.starts_with(&expected),
            "{index} ({}): {:?}, not {expected:?}",
            open.choice,
            open.all
        );
        let own = datum(index, if open.choice == 1 { root } else { me });
        assert_eq!(open.own[0], own, "operation {index}");
    }
}

#[test]
fn posts_are_seen_by_all_and_slots_are_used_again_in_time_whether_ranks_wait_or_not() {
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
                let turn = Turn::combine_all(own, size, (operator, 0..1), into);
                let done = Board::new(view, size, me).run(&turn, &mut || Ok(()));
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
        board.run(&Turn::barrier(size), &mut look).expect("valid");
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
