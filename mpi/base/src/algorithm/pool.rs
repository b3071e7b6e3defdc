//! The pool: long reductions of ranks that share a node, through memory that all of them see.
//!
//! The vector has a part for each rank, which combines it for all. Parts go through the pool slice by slice:
//! each rank copies its operands of the others' parts into its room; when all have, it combines its own part
//! with the operands that the others have copied, in the order of ranks, and leaves the sum in the pool for
//! the ranks that need it. So each byte is copied by its owner once in and once out, as messages would copy
//! it, but without a system call, and with two meetings instead of a round for each partner.
//!
//! A room is used again without a further meeting: a rank that copies operands into its room has met every
//! rank that had finished reading the operands before, and a rank that leaves a sum there has met every rank
//! since they began the next slice.

use super::board::{POST_MAX, Pause, is_of_one_node};
use super::memory::{Scratch, combine};
use super::operator::Operator;
use super::team::Team;
use crate::error::Result;
use nmad_drivers::node::Segment as SharedMemory;
use nmad_engine::Segments;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most ranks: everybody waits for everybody.
pub const RANKS_MAX: usize = 32;

/// Whether ranks can combine vectors of `len` bytes in a pool; shorter ones are for a board.
pub fn serves(team: &Team, len: u64) -> bool {
    len > POST_MAX as u64 && is_of_one_node(team, RANKS_MAX)
}

/// Bytes of a room, if there are not too many ranks: a vector of 1 MiB goes through in one slice.
const ROOM: usize = 1 << 20;
/// Bytes of all rooms: well within the cache that cores share.
const ROOMS: usize = 8 << 20;
/// Bytes that are combined at a time, so that they stay in the cache of a core.
const CHUNK: usize = 16 << 10;
const LINE: usize = 64;

/// One rank's view of the pool.
#[derive(Debug)]
pub struct Pool {
    memory: SharedMemory,
    size: usize,
    me: usize,
    /// Meetings so far.
    met: u64,
    scratch: Scratch,
}

/// The operands to combine.
pub struct Sums<'a> {
    /// The operator.
    pub operator: &'a Operator,
    /// Where the part of each rank begins, in elements, and the end of the last.
    pub bounds: &'a [i64],
}

/// The ranks that receive sums, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Each rank its part.
    Parts,
    /// One rank everything.
    AtRoot(usize),
    /// All ranks everything.
    Everywhere,
}

impl Pool {
    /// Bytes of shared memory for `size` ranks.
    pub const fn len(size: usize) -> usize {
        size * (room(size) + LINE)
    }

    /// The view of rank `me` of `size`, on memory of the right length that was zero at first.
    pub fn new(memory: SharedMemory, size: usize, me: usize) -> Pool {
        Pool { memory, size, me, met: 0, scratch: Scratch::new(CHUNK) }
    }

    /// The memory that the ranks share.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Combines operands of all ranks, which lie in a row in `own`; `into` gets what is wanted here, which is
    /// nothing if it is empty. Both may begin at the same place. Serves allreduce, reduce and
    /// reduce_scatter.
    pub fn combine(
        &mut self,
        own: &Segments,
        sums: &Sums<'_>,
        (wanted, into): (Wanted, &Segments),
        pause: Pause<'_>,
    ) -> Result<()> {
        let element = sums.operator.len(1).max(1) as usize;
        let slice = (room(self.size) / self.size / LINE * LINE / element) as i64;
        let longest = (0..self.size).map(|rank| sums.bounds[rank + 1] - sums.bounds[rank]).max().unwrap_or(0);
        let mut from = 0;
        while from < longest {
            let turn = Turn { own, sums, wanted, into, from, slice };
            self.put(&turn);
            self.meet(pause)?;
            self.sum_up(&turn);
            self.meet(pause)?;
            self.gather(&turn);
            from += slice;
        }
        Ok(())
    }

    /// Shows the others what we have of their parts.
    fn put(&self, turn: &Turn<'_>) {
        for rank in self.others() {
            for bytes in turn.own(&turn.elements(rank)).slices() {
                self.memory.put(self.place(turn, self.me, rank), bytes);
            }
        }
    }

    /// Combines our part, and leaves it in our room if somebody else wants it.
    fn sum_up(&mut self, turn: &Turn<'_>) {
        let (me, operator) = (self.me, turn.sums.operator);
        let mine = turn.elements(me);
        let step = (CHUNK as u64 / operator.len(1).max(1)) as i64;
        let mut start = mine.start;
        while start < mine.end {
            let chunk = start..mine.end.min(start + step);
            let offset = operator.len(start - mine.start) as usize;
            let sum = self.sum_of(turn, &chunk, offset);
            for bytes in sum.slices() {
                turn.write(me, start, bytes);
                if turn.wanted != Wanted::Parts && turn.wanted != Wanted::AtRoot(me) {
                    self.memory.put(self.place(turn, me, me) + offset, bytes);
                }
            }
            start = chunk.end;
        }
    }

    /// The sum of elements of our part, `offset` bytes behind the begin of the slice.
    fn sum_of(&mut self, turn: &Turn<'_>, chunk: &Range<i64>, offset: usize) -> Segments {
        let (operator, count) = (turn.sums.operator, chunk.end - chunk.start);
        let len = operator.len(count) as usize;
        let (own, sum) = (turn.own(chunk), self.scratch.lend(len));
        for rank in (0..self.size).rev() {
            let operands = match rank == self.me {
                true => own.slices().next().unwrap_or_default(),
                false => self.memory.bytes(self.place(turn, rank, self.me) + offset, len),
            };
            match rank + 1 == self.size {
                true => _ = sum.write(0, operands),
                false => combine(operator, operands, &sum, count),
            }
        }
        sum
    }

    /// Fetches the others' parts, if we want them.
    fn gather(&self, turn: &Turn<'_>) {
        let is_wanted = match turn.wanted {
            Wanted::Parts => false,
            Wanted::AtRoot(root) => root == self.me,
            Wanted::Everywhere => true,
        };
        for rank in self.others().filter(|_| is_wanted) {
            let elements = turn.elements(rank);
            let len = turn.sums.operator.len(elements.end - elements.start) as usize;
            turn.write(rank, elements.start, self.memory.bytes(self.place(turn, rank, rank), len));
        }
    }

    /// Waits until all have come so far.
    fn meet(&mut self, pause: Pause<'_>) -> Result<()> {
        self.met += 1;
        self.mark(self.me).store(self.met, Ordering::Release);
        let mut has_changed = true;
        for rank in 0..self.size {
            while self.mark(rank).load(Ordering::Acquire) < self.met {
                pause(&self.memory, std::mem::take(&mut has_changed))?;
            }
        }
        Ok(())
    }

    /// The other ranks, those behind us first, so that nobody is everybody's first.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (size, me) = (self.size, self.me);
        (1..size).map(move |distance| (me + distance) % size)
    }

    /// Where a rank says how often it was at a meeting.
    fn mark(&self, rank: usize) -> &AtomicU64 {
        self.memory.word(self.size * room(self.size) + rank * LINE)
    }

    /// Where the slice of a part lies in a rank's room.
    fn place(&self, turn: &Turn<'_>, rank: usize, part: usize) -> usize {
        let slice = turn.sums.operator.len(turn.slice) as usize;
        rank * room(self.size) + part * slice.next_multiple_of(LINE)
    }
}

/// Bytes of one rank's room among `size` ranks.
const fn room(size: usize) -> usize {
    let most = ROOMS / size / LINE * LINE;
    if most < ROOM { most } else { ROOM }
}

/// One slice of each part.
struct Turn<'a> {
    own: &'a Segments,
    sums: &'a Sums<'a>,
    wanted: Wanted,
    into: &'a Segments,
    /// Where it begins in the parts, in elements.
    from: i64,
    /// Elements of it.
    slice: i64,
}

impl Turn<'_> {
    /// The elements of a rank's part that belong to it.
    fn elements(&self, rank: usize) -> Range<i64> {
        let (start, end) = (self.sums.bounds[rank], self.sums.bounds[rank + 1]);
        (start + self.from).min(end)..(start + self.from + self.slice).min(end)
    }

    /// Our operands: one piece, or nothing.
    fn own(&self, elements: &Range<i64>) -> Segments {
        let len = self.sums.operator.len(elements.end - elements.start);
        self.own.slice(self.sums.operator.len(elements.start), len)
    }

    /// Puts sums of a rank's part where they are wanted here.
    fn write(&self, rank: usize, start: i64, bytes: &[u8]) {
        let first = if self.wanted == Wanted::Parts { self.sums.bounds[rank] } else { 0 };
        if !self.into.is_empty() {
            self.into.write(self.sums.operator.len(start - first), bytes);
        }
    }
}
