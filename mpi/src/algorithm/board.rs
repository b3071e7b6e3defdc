//! The board: short collectives of ranks that share a node, through memory that all of them see.
//!
//! A message from rank to rank takes a header, matching and a completion; a short collective between cores
//! needs no more than the way of a cache line. So each rank has a ring of *slots* in which it posts its data,
//! with the number of the operation in the same cache line, and the others look. Each rank combines all data
//! by itself, in the order of ranks.
//!
//! A slot is used again after [`RING`] operations. By then all ranks must have seen it: a rank that has
//! collected a post of every rank knows that every rank is past the operation before ([`Board::safe`]); in
//! operations in which some ranks do not wait for all others, ranks say when they are done.

mod parts;

use super::memory::combine;
use super::operator::Operator;
use super::team::Team;
use crate::error::Result;
use newmadeleine::{Segments, SharedMemory};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Bytes that a rank can post in one operation.
pub const POST_MAX: usize = SLOT - HEAD;
/// Most ranks: everybody looks at everybody's slot.
pub const RANKS_MAX: usize = 32;

const SLOT: usize = 2048;
/// The number of the operation, and room that aligns what follows for any operand.
const HEAD: usize = 16;
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
    /// Everybody is done with the operations up to this one.
    safe: u64,
    unasked: parts::Unasked,
}

impl Board {
    /// Bytes of shared memory for `size` ranks.
    pub const fn len(size: usize) -> usize {
        size * (RING as usize * SLOT + LINE)
    }

    /// The view of rank `me` of `size`, on memory of the right length that was zero at first.
    pub fn new(memory: SharedMemory, size: usize, me: usize) -> Board {
        Board { memory, size, me, number: 0, safe: 0, unasked: parts::Unasked::default() }
    }

    /// Nobody leaves before everybody has come.
    pub fn barrier(&mut self, pause: Pause<'_>) -> Result<()> {
        self.begin(pause)?;
        self.post(&Segments::empty());
        self.meet(pause)
    }

    /// The root posts its data; the others get what `into` holds of it, from byte `from` on. Serves bcast,
    /// and with a part for each rank scatter.
    pub fn spread(
        &mut self,
        root: usize,
        posted: &Segments,
        (from, into): (usize, &Segments),
        pause: Pause<'_>,
    ) -> Result<()> {
        self.begin(pause)?;
        if self.me == root {
            self.post(posted);
        } else {
            self.look(root, pause)?;
            self.fetch(root, from, into);
        }
        self.done();
        Ok(())
    }

    /// Each rank posts its data; the root gets all of it. Serves gather.
    pub fn collect(
        &mut self,
        root: usize,
        posted: &Segments,
        into: impl Fn(usize) -> Result<Segments>,
        pause: Pause<'_>,
    ) -> Result<()> {
        self.begin(pause)?;
        self.post(posted);
        for rank in (0..self.size).filter(|_| self.me == root) {
            self.look(rank, pause)?;
            self.fetch(rank, 0, &into(rank)?);
        }
        self.done();
        Ok(())
    }

    /// Each rank posts its data; everybody gets that of each rank, from byte `from` of it on, into the memory
    /// that `into` names. Serves allgather, and with a part for each rank alltoall.
    pub fn exchange(
        &mut self,
        posted: &Segments,
        from: usize,
        into: impl Fn(usize) -> Result<Segments>,
        pause: Pause<'_>,
    ) -> Result<()> {
        self.begin(pause)?;
        self.post(posted);
        self.meet(pause)?;
        for rank in 0..self.size {
            self.fetch(rank, from, &into(rank)?);
        }
        Ok(())
    }

    /// Each rank posts its operands; `wanted` of them, combined over all ranks, go into `into`. Serves
    /// allreduce, and with a part for each rank reduce_scatter.
    pub fn combine_all(
        &mut self,
        posted: &Segments,
        (operator, wanted): (&Operator, Range<i64>),
        into: &Segments,
        pause: Pause<'_>,
    ) -> Result<()> {
        self.begin(pause)?;
        self.post(posted);
        self.meet(pause)?;
        self.combine(0..self.size, (operator, wanted), into);
        Ok(())
    }

    /// Each rank posts its operands; those of some ranks, combined, go into `into`, if there are any. Serves
    /// reduce and the scans.
    pub fn combine_some(
        &mut self,
        posted: &Segments,
        ranks: Range<usize>,
        (operator, count): (&Operator, i64),
        into: &Segments,
        pause: Pause<'_>,
    ) -> Result<()> {
        self.begin(pause)?;
        self.post(posted);
        for rank in ranks.clone() {
            self.look(rank, pause)?;
        }
        self.combine(ranks, (operator, 0..count), into);
        self.done();
        Ok(())
    }

    /// Begins an operation, when its slot is free.
    fn begin(&mut self, pause: Pause<'_>) -> Result<()> {
        self.number += 1;
        let last = self.number.saturating_sub(RING);
        while self.safe < last {
            let done = |rank: usize| self.memory.word(self.end(rank)).load(Ordering::Acquire);
            let least = (0..self.size).map(done).min().unwrap_or(0);
            if least < last {
                pause()?;
            }
            self.safe = self.safe.max(least);
        }
        Ok(())
    }

    /// Shows data of ours to all.
    #[inline]
    fn post(&self, data: &Segments) {
        let slot = self.slot(self.me);
        let mut offset = slot + HEAD;
        for piece in data.slices() {
            self.memory.put(offset, piece);
            offset += piece.len();
        }
        self.memory.word(slot).store(self.number, Ordering::Release);
    }

    /// Waits for the post of a rank.
    #[inline]
    fn look(&self, rank: usize, pause: Pause<'_>) -> Result<()> {
        let word = self.memory.word(self.slot(rank));
        while word.load(Ordering::Acquire) != self.number {
            pause()?;
        }
        Ok(())
    }

    /// Waits for the posts of all ranks.
    #[inline]
    fn meet(&mut self, pause: Pause<'_>) -> Result<()> {
        for rank in 0..self.size {
            self.look(rank, pause)?;
        }
        self.safe = self.number - 1;
        Ok(())
    }

    /// Says that we have seen what we wanted.
    #[inline]
    fn done(&self) {
        self.memory.word(self.end(self.me)).store(self.number, Ordering::Release);
    }

    /// Copies from the post of a rank as much as `into` holds.
    #[inline]
    fn fetch(&self, rank: usize, from: usize, into: &Segments) {
        into.write(0, self.memory.bytes(self.slot(rank) + HEAD + from, into.len() as usize));
    }

    /// Combines operands of ranks in a row.
    fn combine(&self, ranks: Range<usize>, (operator, wanted): (&Operator, Range<i64>), into: &Segments) {
        let Some(last) = ranks.clone().next_back() else { return };
        let from = operator.len(wanted.start) as usize;
        let len = operator.len(wanted.end - wanted.start) as usize;
        self.fetch(last, from, into);
        for rank in ranks.rev().skip(1) {
            let operands = self.memory.bytes(self.slot(rank) + HEAD + from, len);
            combine(operator, operands, into, wanted.end - wanted.start);
        }
    }

    #[inline]
    fn slot(&self, rank: usize) -> usize {
        (rank * RING as usize + (self.number % RING) as usize) * SLOT
    }

    /// Where a rank says which operation it is done with.
    fn end(&self, rank: usize) -> usize {
        self.size * RING as usize * SLOT + rank * LINE
    }
}
