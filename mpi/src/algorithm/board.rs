//! The board: short collectives of ranks that share a node, through memory that all of them see.
//!
//! A message from rank to rank takes a header, matching and a completion; a short collective between cores
//! needs no more than the way of a cache line. So each rank has a ring of *slots* in which it posts its data,
//! with the number of the operation in the same cache line, and the others look. Each rank combines all data
//! by itself, in the order of ranks.
//!
//! A slot is used again after [`RING`] operations. By then all ranks must be done with it, and each says with
//! what it is done: in the line of each post, so that a rank that waits for the posts of all learns it with
//! them ([`Board::safe`]), and in a line of its own, for whoever needs to know before.
//!
//! Operations of nonblocking calls have their turn in the same order, and end when somebody looks
//! ([`later`]).

mod later;
mod parts;
mod turn;

pub use later::Flag;
pub use turn::Turn;

use super::team::Team;
use crate::error::Result;
use later::Later;
use newmadeleine::{Segments, SharedMemory};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes that a rank can post in one operation.
pub const POST_MAX: usize = SLOT - HEAD;
/// Most ranks: everybody looks at everybody's slot.
pub const RANKS_MAX: usize = 32;

const SLOT: usize = 2048;
/// The number of the operation, and that of the last one up to which the rank is done with all. What follows
/// is aligned for any operand.
const HEAD: usize = 16;
const DONE: usize = 8;
/// Slots of a rank.
const RING: u64 = 4;
const LINE: usize = 64;

/// Whether ranks can do an operation on a board in which each posts `len` bytes at most.
pub fn serves(team: &Team, len: u64) -> bool {
    len <= POST_MAX as u64 && is_of_one_node(team, RANKS_MAX)
}

/// Whether they share a node, and are not more than so many.
pub(super) fn is_of_one_node(team: &Team, ranks_max: usize) -> bool {
    !team.spans_nodes() && (2..=ranks_max).contains(&team.size())
}

/// Called between two looks while nothing has come; an error ends the wait.
pub type Pause<'a> = &'a mut dyn FnMut() -> Result<()>;

/// One rank's view of the board.
#[derive(Debug)]
pub struct Board {
    memory: SharedMemory,
    size: usize,
    me: usize,
    /// Operations begun.
    number: u64,
    /// A blocking operation is under way, the last one that was begun.
    is_busy: bool,
    /// Everybody is done with the operations up to this one.
    safe: u64,
    /// Operations of nonblocking calls that have not ended; the first one has not.
    later: VecDeque<Later>,
    unasked: parts::Unasked,
}

impl Board {
    /// Bytes of shared memory for `size` ranks.
    pub const fn len(size: usize) -> usize {
        size * (RING as usize * SLOT + LINE)
    }

    /// The view of rank `me` of `size`, on memory of the right length that was zero at first.
    pub fn new(memory: SharedMemory, size: usize, me: usize) -> Board {
        let (later, unasked) = (VecDeque::new(), parts::Unasked::default());
        Board { memory, size, me, number: 0, is_busy: false, safe: 0, later, unasked }
    }

    /// Does an operation to its end.
    ///
    /// # Errors
    /// What `pause` says.
    #[inline]
    pub fn run(&mut self, turn: &Turn<'_>, pause: Pause<'_>) -> Result<()> {
        let number = self.enter(pause)?;
        if let Some(posted) = &turn.posted {
            self.post(number, posted);
        }
        self.look(number, turn.awaits.clone(), pause)?;
        turn.finish(self, number);
        self.leave(number, turn.is_mutual);
        Ok(())
    }

    /// Begins an operation, when its slot is free and those before it have been posted; its number.
    #[inline]
    fn enter(&mut self, pause: Pause<'_>) -> Result<u64> {
        self.number += 1;
        self.is_busy = true;
        while !(self.later.back().is_none_or(Later::is_posted) && self.is_free(self.number)) {
            pause()?;
            self.go_on();
        }
        Ok(self.number)
    }

    /// The operation that was begun last has ended. Where each rank waits for all, the next post tells that
    /// as early as anybody needs to know.
    #[inline]
    fn leave(&mut self, number: u64, is_mutual: bool) {
        self.is_busy = false;
        if !is_mutual || !self.later.is_empty() {
            self.say_done(number);
        }
    }

    /// Whether all ranks are done with what was in the slot of an operation.
    #[inline]
    fn is_free(&mut self, number: u64) -> bool {
        let last = number.saturating_sub(RING);
        self.safe >= last || self.ask_for(last)
    }

    /// Whether all ranks say that they are done with this operation.
    fn ask_for(&mut self, last: u64) -> bool {
        let done = |rank: usize| self.memory.word(self.end(rank)).load(Ordering::Acquire);
        self.safe = (0..self.size).map(done).min().unwrap_or(0).max(self.safe);
        self.safe >= last
    }

    /// Up to which operation we are done with all, if we are with those of blocking calls up to `number`.
    #[inline]
    fn done(&self, number: u64) -> u64 {
        self.later.front().map_or(number, |first| number.min(first.number() - 1))
    }

    #[inline]
    fn say_done(&self, number: u64) {
        self.memory.word(self.end(self.me)).store(self.done(number), Ordering::Release);
    }

    /// Shows data of ours to all.
    #[inline]
    fn post(&self, number: u64, data: &Segments) {
        let mut offset = self.slot(self.me, number) + HEAD;
        for piece in data.slices() {
            self.memory.put(offset, piece);
            offset += piece.len();
        }
        self.show(number);
    }

    /// What is in our slot is all of the post.
    #[inline]
    fn show(&self, number: u64) {
        let slot = self.slot(self.me, number);
        self.memory.word(slot + DONE).store(self.done(number - 1), Ordering::Relaxed);
        self.memory.word(slot).store(number, Ordering::Release);
    }

    /// Whether the post of a rank is there.
    #[inline]
    fn is_there(&self, rank: usize, number: u64) -> bool {
        self.memory.word(self.slot(rank, number)).load(Ordering::Acquire) == number
    }

    /// Waits for the posts of ranks.
    #[inline]
    fn look(&mut self, number: u64, ranks: Range<usize>, pause: Pause<'_>) -> Result<()> {
        for rank in ranks.clone() {
            while !self.is_there(rank, number) {
                pause()?;
                self.go_on();
            }
        }
        self.learn(number, &ranks);
        Ok(())
    }

    /// The posts of all ranks, once they are there, say what everybody is done with.
    #[inline]
    fn learn(&mut self, number: u64, ranks: &Range<usize>) {
        if ranks.len() == self.size {
            let done = |rank: usize| self.memory.word(self.slot(rank, number) + DONE).load(Ordering::Relaxed);
            self.safe = (0..self.size).map(done).min().unwrap_or(0).max(self.safe);
        }
    }

    /// The post of a rank, from byte `from` on.
    #[inline]
    fn posted(&self, rank: usize, number: u64, from: usize, len: usize) -> &[u8] {
        self.memory.bytes(self.slot(rank, number) + HEAD + from, len)
    }

    #[inline]
    fn slot(&self, rank: usize, number: u64) -> usize {
        (rank * RING as usize + (number % RING) as usize) * SLOT
    }

    /// Where a rank says which operation it is done with.
    fn end(&self, rank: usize) -> usize {
        self.size * RING as usize * SLOT + rank * LINE
    }
}
