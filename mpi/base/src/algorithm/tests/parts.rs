//! Parts of different lengths on the board, between threads; nonblocking ones end in any order.

use super::boards::{OPERATIONS, boards, look};
use super::types::memory;
use crate::algorithm::board::{Board, Flag, Ranks, Turn};
use crate::error::{Class, Result};
use nmad_engine::Segments;
use std::collections::VecDeque;

/// Bytes that rank `from` has for rank `to` in operation `index`: now and then more than a post takes.
fn part_len(index: usize, from: usize, to: usize, size: usize) -> usize {
    match index % 16 {
        9 | 10 if from == index % size => 2500,
        _ => (index * 5 + from * 3 + to * 7) % 90,
    }
}

/// Parts that go from each of some ranks to each of some, as one rank has them.
struct Parts {
    index: usize,
    me: usize,
    out: Vec<Vec<u8>>,
    into: Vec<Vec<u8>>,
}

impl Parts {
    fn new(index: usize, me: usize, size: usize) -> Parts {
        let out = |to| vec![Parts::content(index, me, to); part_len(index, me, to, size)];
        let into = |from| vec![0; part_len(index, from, me, size)];
        Parts { index, me, out: (0..size).map(out).collect(), into: (0..size).map(into).collect() }
    }

    fn content(index: usize, from: usize, to: usize) -> u8 {
        (index + 10 * from + 100 * to) as u8 | 1
    }

    fn memory(parts: &mut [Vec<u8>]) -> impl Fn(usize) -> Result<Segments> + use<> {
        let all: Vec<Segments> = parts.iter_mut().map(|part| memory(part)).collect();
        move |rank| Ok(all[rank].clone())
    }

    /// Whether we have the parts of these ranks, and of no others.
    fn check(&self, came: impl Fn(usize) -> bool) {
        let Parts { index, me, into, .. } = self;
        for (from, part) in into.iter().enumerate() {
            let expected = if came(from) { Parts::content(*index, from, *me) } else { 0 };
            assert!(part.iter().all(|byte| *byte == expected), "operation {index}, from {from} to {me}");
        }
    }
}

/// A rank of the test.
struct Rank {
    board: Board,
    me: usize,
    size: usize,
}

impl Rank {
    /// The ranks that send parts: one of them, or all; or all send to one.
    fn senders(&self, index: usize) -> std::ops::Range<usize> {
        let root = self.root(index);
        if index.is_multiple_of(3) { 0..self.size } else { root..root + 1 }
    }

    fn root(&self, index: usize) -> usize {
        index / 3 % self.size
    }

    fn turn(&mut self, parts: &mut Parts) -> Result<Turn<'static>> {
        let (me, index, root) = (self.me, parts.index, self.root(parts.index));
        let (out, into) = (Parts::memory(&mut parts.out), Parts::memory(&mut parts.into));
        match index % 3 {
            2 => self.board.collect_parts(out(root)?, (me == root).then_some(into)),
            _ => self.board.parts(self.senders(index), out, into),
        }
    }

    /// Whether a rank has posted that its data is too long.
    fn is_long(&self, index: usize, from: usize) -> bool {
        let len = |to| part_len(index, from, to, self.size);
        match index % 3 {
            2 => len(self.root(index)) > 2048,
            _ => self.senders(index).contains(&from) && (0..self.size).any(|to| len(to) > 2048),
        }
    }

    /// Checks what has come when the board has left the parts of these ranks to messages.
    fn check(&self, parts: &Parts, left: Ranks) {
        let (index, me) = (parts.index, self.me);
        let knows_all = if index % 3 == 2 { me == self.root(index) } else { !self.is_long(index, me) };
        let is_known = |rank: &usize| self.is_long(index, *rank) && (knows_all || *rank == me);
        assert_eq!(left, (0..self.size).filter(is_known).collect(), "operation {index}");
        parts.check(|from| match index % 3 {
            2 => knows_all && !self.is_long(index, from),
            _ => left.is_empty() && self.senders(index).contains(&from),
        });
    }

    /// Operations that end later, up to two windows of them at once, and blocking ones among them.
    fn run(&mut self) {
        let mut open: VecDeque<(Parts, Flag)> = VecDeque::new();
        for index in 0..OPERATIONS {
            let mut parts = Parts::new(index, self.me, self.size);
            let turn = self.turn(&mut parts).expect("valid");
            if index.is_multiple_of(5) {
                let left = self.board.run_parts(turn, &mut look).expect("valid");
                self.check(&parts, left);
                continue;
            }
            let ended = self.board.start(turn);
            open.push_back((parts, ended));
            let most = if index / 130 % 2 == 0 { 130 } else { (index + self.me) % 4 };
            while open.len() > most {
                self.end(&mut open);
            }
        }
        while !open.is_empty() {
            self.end(&mut open);
        }
    }

    /// Checks one that has ended, any of them, or looks.
    fn end(&mut self, open: &mut VecDeque<(Parts, Flag)>) {
        let Some(place) = open.iter().rposition(|(_, ended)| ended.get().is_some()) else {
            std::thread::yield_now();
            self.board.go_on();
            return;
        };
        let (parts, ended) = open.remove(place).expect("there");
        let left = ended.get().cloned().expect("ended").expect("valid");
        self.check(&parts, left);
    }
}

/// Lets each rank of several do something.
fn all<T: Send>(size: usize, rank: impl Fn(Rank) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let run = |(me, board)| {
            let rank = &rank;
            scope.spawn(move || rank(Rank { board, me, size }))
        };
        let threads: Vec<_> = boards(size).into_iter().enumerate().map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn parts_of_all_lengths_are_exchanged_by_all_or_none() {
    for size in 1..=4 {
        let answers = all(size, exchange_parts);
        assert!(answers.iter().all(|of| *of == answers[0]), "all ranks alike");
        let count = answers[0].iter().filter(|answer| **answer).count();
        assert!((OPERATIONS / 2..OPERATIONS).contains(&count), "{count} of {OPERATIONS}, {size} ranks");
    }
}

/// Whether the board did what blocking calls asked for.
fn exchange_parts(mut rank: Rank) -> Vec<bool> {
    let mut exchange = |index: usize| {
        let mut parts = Parts::new(index, rank.me, rank.size);
        if index % 3 == 2 {
            let turn = rank.turn(&mut parts).expect("valid");
            let left = rank.board.run_parts(turn, &mut look).expect("valid");
            rank.check(&parts, left);
            return None;
        }
        let (out, into) = (Parts::memory(&mut parts.out), Parts::memory(&mut parts.into));
        let senders = rank.senders(index);
        let left = rank.board.ask_parts(|board| board.parts(senders, out, into), &mut look);
        let is_done = left.expect("valid").is_empty();
        parts.check(|from| is_done && rank.senders(index).contains(&from));
        Some(is_done)
    };
    (0..OPERATIONS * 2).filter_map(&mut exchange).take(OPERATIONS).collect()
}

#[test]
fn parts_that_are_asked_for_later_come_in_any_order_and_long_ones_are_told_by_their_ranks() {
    for size in 1..=5 {
        all(size, |mut rank| rank.run());
    }
}

#[test]
fn parts_that_are_as_long_as_a_post_fit_with_their_table() {
    let mut boards = boards(2);
    let mut data = [vec![1u8; 2048], vec![2u8; 2048]];
    let mut room = [vec![0u8; 2048], vec![0u8; 2048]];
    let mut ended = Vec::new();
    for ((board, data), room) in boards.iter_mut().zip(&mut data).zip(&mut room) {
        let (data, room) = (memory(data), memory(room));
        let half = |all: &Segments, rank: usize| Ok(all.slice(1024 * rank as u64, 1024));
        let turn = board.parts(0..2, |to| half(&data, to), |from| half(&room, from)).expect("valid");
        ended.push(board.start(turn));
    }
    boards[0].go_on();
    assert!(ended.iter().all(|ended| ended.get() == Some(&Ok(Ranks::NONE))), "{ended:?}");
    assert!(room.iter().all(|room| room[..1024] == [1; 1024] && room[1024..] == [2; 1024]));
}

#[test]
fn a_rank_whose_parts_are_too_long_waits_for_nobody() {
    let mut boards = boards(2);
    let mut long = vec![1u8; 3000];
    let long = memory(&mut long);
    let out = |_| Ok(long.clone());
    let turn = boards[0].parts(0..2, out, out).expect("valid");
    let ended = boards[0].start(turn);
    assert_eq!(ended.get(), Some(&Ok(Ranks::from_iter([0]))));
    let nothing = |_| Ok(Segments::empty());
    let turn = boards[1].parts(0..2, nothing, nothing).expect("valid");
    let ended = boards[1].start(turn);
    assert_eq!(ended.get(), Some(&Ok(Ranks::from_iter([0]))));
}

#[test]
fn a_part_that_is_longer_than_expected_is_an_error_and_the_board_goes_on() {
    let [mut board] = <[Board; 1]>::try_from(boards(1)).expect("one");
    let (mut from, mut into) = ([7u8; 8], [0u8; 4]);
    let [from, into] = [&mut from[..], &mut into].map(memory);
    let parts = |board: &mut Board, into: &Segments| {
        board.parts(0..1, |_| Ok(from.clone()), |_| Ok(into.clone())).expect("valid")
    };
    let collect =
        |board: &mut Board| board.collect_parts(from.clone(), Some(|_| Ok(into.clone()))).expect("valid");
    for _ in 0..OPERATIONS {
        let done = board.ask_parts(|board| Ok(parts(board, &into)), &mut look);
        assert_eq!(done.map_err(|error| error.class()), Err(Class::TRUNCATE));
        let turn = collect(&mut board);
        let done = board.run_parts(turn, &mut look);
        assert_eq!(done.map_err(|error| error.class()), Err(Class::TRUNCATE));
        for turn in [parts(&mut board, &into), collect(&mut board)] {
            let ended = board.start(turn);
            let class = ended.get().and_then(|ended| Some(ended.as_ref().err()?.class()));
            assert_eq!(class, Some(Class::TRUNCATE));
        }
    }
    assert_eq!(board.ask_parts(|board| Ok(parts(board, &from)), &mut look), Ok(Ranks::NONE));
}
