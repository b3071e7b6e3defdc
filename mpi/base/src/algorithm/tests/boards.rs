//! The board, between threads: any sequence of operations, more of them than a rank may be ahead.

use super::types::{memory, reductions, sum};
use crate::algorithm::board::{Board, Flag, Ranks, Turn};
use crate::algorithm::operator::Operator;
use crate::datatype::Datatype;
use crate::error::{Class, Result};
use nmad_drivers::node::Segment as SharedMemory;
use nmad_engine::Segments;

/// Operations of one run: several windows.
pub(super) const OPERATIONS: usize = 400;

/// The boards of `size` ranks.
pub(super) fn boards(size: usize) -> Vec<Board> {
    let (first, fd) = SharedMemory::create(Board::len(size)).expect("shared memory");
    let adopt = |_| SharedMemory::adopt(&fd, Board::len(size)).expect("the same");
    let views = std::iter::once(first).chain((1..size).map(adopt));
    views.enumerate().map(|(me, view)| Board::new(view, size, me)).collect()
}

pub(super) fn look(_: &SharedMemory, _: bool) -> Result<()> {
    std::thread::yield_now();
    Ok(())
}

/// How much a rank has in operation `index`: what fits into a slot of the board, just does not, or is as much
/// as it takes.
fn count(index: usize) -> usize {
    [1, 28, 29, 100, 512][(index + index / 5) % 5]
}

/// What rank `rank` has in operation `index`.
fn data(index: usize, rank: usize) -> Vec<i32> {
    (0..count(index)).map(|k| (index * 1000 + rank * 100 + k) as i32).collect()
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
        let own = data(index, self.me).into();
        let all = vec![-1; self.size * count(index)].into();
        let mut open = Open { index, choice, own, all, ended: None };
        let turn = self.turn(&mut open, operator);
        if is_later {
            open.ended = Some(self.board.start(turn));
        } else {
            assert_eq!(self.board.run(&turn, &mut look), Ok(Ranks::NONE));
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
        let (count, len) = (count(open.index) as i64, own.len());
        match open.choice {
            0 => Turn::barrier(size),
            1 if me == root => Turn::spread(root, Some(own), (0, Segments::empty())),
            1 => Turn::spread(root, None, (0, own)),
            2 => Turn::exchange(size, own, 0, len, into),
            3 => Turn::collect(size, own, len, (me == root).then_some(into)),
            choice => {
                Turn::combine(own, self.ranks(choice, open.index), (operator, 0..count), into.slice(0, len))
            }
        }
    }

    /// Compares those that have ended; the others.
    fn check_ended(&self, open: Vec<Open>) -> Vec<Open> {
        let has_ended = |one: &Open| one.ended.as_ref().is_none_or(|ended| ended.get().is_some());
        let (ended, left): (Vec<Open>, Vec<Open>) = open.into_iter().partition(has_ended);
        ended.iter().for_each(|one| self.check(one));
        left
    }

    fn check(&self, open: &Open) {
        let (me, size, index) = (self.me, self.size, open.index);
        let root = self.root(index);
        let nothing = vec![-1; size * count(index)];
        let all = || (0..size).flat_map(|rank| data(index, rank)).collect();
        let sum = |ranks: std::ops::Range<usize>| {
            let operands: Vec<Vec<i32>> = ranks.map(|rank| data(index, rank)).collect();
            (0..count(index)).map(|k| operands.iter().map(|operand| operand[k]).sum()).collect()
        };
        let expected: Vec<i32> = match open.choice {
            2 => all(),
            3 if me == root => all(),
            0..=3 => nothing,
            choice => match self.ranks(choice, index) {
                ranks if ranks.is_empty() => nothing,
                ranks => sum(ranks),
            },
        };
        assert!(
            open.all.starts_with(&expected),
            "{index} ({}): {:?}, not {expected:?}",
            open.choice,
            open.all
        );
        let own = data(index, if open.choice == 1 { root } else { me });
        assert_eq!(*open.own, *own, "operation {index}");
    }
}

#[test]
fn posts_are_seen_by_all_and_places_are_used_again_in_time_whether_ranks_wait_or_not() {
    let operator = sum();
    for size in 1..=5 {
        std::thread::scope(|scope| {
            for (me, board) in boards(size).into_iter().enumerate() {
                let (operator, mut rank) = (&operator, Rank { board, me, size });
                scope.spawn(move || rank.run(size, operator));
            }
        });
    }
}

/// For how many operations the root waits until the readers have read some, and which the first is.
fn run_ahead(count: impl Fn(usize) -> usize) -> (usize, Option<usize>) {
    let mut boards = boards(3);
    let (root, readers) = boards.split_first_mut().expect("three");
    let data = |index: usize| -> Vec<usize> { (0..count(index)).map(|k| index * 1000 + k).collect() };
    let mut read = vec![0; readers.len()];
    let (mut waits, mut first) = (0, None);
    for index in 0..OPERATIONS {
        let mut has_waited = false;
        // At each look of the root one reader reads another operation, whose data is there.
        let mut next = || {
            let slowest = (0..read.len()).min_by_key(|reader| read[*reader]).expect("readers");
            let mut into = vec![0; count(read[slowest])];
            let turn = Turn::spread(0, None, (0, memory(&mut into)));
            let refuse = &mut |_: &SharedMemory, _| Err(Class::INTERN.error("waits"));
            assert_eq!(readers[slowest].run(&turn, refuse), Ok(Ranks::NONE), "operation {}", read[slowest]);
            assert_eq!(into, data(read[slowest]));
            read[slowest] += 1;
        };
        let mut own = data(index);
        let turn = Turn::spread(0, Some(memory(&mut own)), (0, Segments::empty()));
        let pause = &mut |_: &SharedMemory, _| {
            has_waited = true;
            next();
            Ok(())
        };
        assert_eq!(root.run(&turn, pause), Ok(Ranks::NONE));
        waits += usize::from(has_waited);
        first = first.or(has_waited.then_some(index));
    }
    (waits, first)
}

#[test]
fn a_root_runs_ahead_by_a_window_or_by_its_room_and_then_waits_for_a_stride_of_the_slowest() {
    // A window of 64, a stride of 16.
    assert_eq!(run_ahead(|_| 1), (OPERATIONS / 16 - 4, Some(64)));
    // 64 KiB of room; a post less than that when the oldest are given back.
    assert_eq!(run_ahead(|_| 256), (OPERATIONS / 16 - 2, Some(32)));
    // Posts that leave something out at the end of the room.
    let (waits, first) = run_ahead(|index| if index % 7 == 0 { 256 } else { 150 });
    assert!((20..28).contains(&waits) && first.is_some_and(|first| (40..64).contains(&first)), "{first:?}");
}

#[test]
fn operands_are_combined_in_the_order_of_ranks() {
    let ordered = reductions().into_iter().find(|r| !r.operator.is_commutative()).expect("there is one");
    let datatype: &Datatype = ordered.operator.datatype();
    assert!(datatype.is_contiguous());
    let size = 4;
    let expected = ordered.over((0..size).map(|rank| super::types::numbers(rank, 1))).expect("four ranks");
    std::thread::scope(|scope| {
        for (me, mut board) in boards(size).into_iter().enumerate() {
            let (operator, expected) = (&ordered.operator, &expected);
            scope.spawn(move || {
                let (mut own, mut result) = (super::types::numbers(me, 1), vec![0; 2]);
                let (own, into) = (memory(&mut own), memory(&mut result));
                let turn = Turn::combine_all(own, size, (operator, 0..1), into);
                let done = board.run(&turn, &mut |_, _| Ok(()));
                assert_eq!((done, result), (Ok(Ranks::NONE), expected.clone()));
            });
        }
    });
}
