//! One operation on the board: what a rank posts, for whose posts it waits, and what it does with them.

use super::ring::{Post, Ring};
use super::{Ranks, table};
use crate::algorithm::memory::combine;
use crate::algorithm::operator::Operator;
use crate::error::Result;
use nmad_drivers::node::Segment as SharedMemory;
use nmad_engine::Segments;
use std::ops::{Deref, Range};

/// The part of one rank in an operation.
#[derive(Debug)]
pub struct Turn<'a> {
    /// None: others need nothing of ours.
    pub(super) posted: Option<Outgoing>,
    /// The ranks whose posts we need.
    pub(super) awaits: Range<usize>,
    pub(super) then: Then<'a>,
}

/// What a rank posts.
#[derive(Debug)]
pub(super) enum Outgoing {
    Data(Segments),
    /// A part for each rank.
    Parts(Vec<Segments>),
}

impl Outgoing {
    #[inline]
    pub(super) fn len(&self) -> u64 {
        match self {
            Outgoing::Data(data) => data.len(),
            Outgoing::Parts(parts) => table::len(parts),
        }
    }

    #[inline]
    pub(super) fn post(&self, ring: &Ring, memory: &SharedMemory, post: Post) {
        match self {
            Outgoing::Data(data) => ring.post(memory, post, data),
            Outgoing::Parts(parts) => table::post(ring, memory, post, parts),
        }
    }
}

/// What is done when they are there.
#[derive(Debug)]
pub(super) enum Then<'a> {
    Nothing,
    /// The memory gets what it holds of the post of the one rank, from a byte on.
    One(usize, Segments),
    /// Each as many bytes, from this one on, of all posts, one after the other.
    Blocks(usize, u64, Segments),
    /// Of the post of each rank what its memory holds.
    Rows(Vec<Segments>),
    /// Some operands of all these ranks, combined.
    Combined(Held<'a>, Range<i64>, Segments),
    /// Of the post of each of these ranks the part for us, unless somebody's parts are too long.
    Parts(Vec<Segments>),
    /// The posts of all ranks, as long as they are, but for those that are too long.
    Wholes(Vec<Segments>),
    /// The data of these ranks is too long, which nobody has to wait for.
    Leave(Ranks),
}

/// The operator of a call, or that of an operation that goes on behind it, which is seldom: apart, so that
/// turns stay small.
#[derive(Debug)]
pub(super) enum Held<'a> {
    Lent(&'a Operator),
    Own(Box<Operator>),
}

impl Deref for Held<'_> {
    type Target = Operator;

    fn deref(&self) -> &Operator {
        match self {
            Held::Lent(operator) => operator,
            Held::Own(operator) => operator,
        }
    }
}

impl<'a> Turn<'a> {
    /// Waits for an empty post of each of `size` ranks.
    #[inline]
    pub fn barrier(size: usize) -> Turn<'a> {
        Turn { posted: Some(Outgoing::Data(Segments::empty())), awaits: 0..size, then: Then::Nothing }
    }

    /// The root posts its data; each rank gets what `into` holds of it, from byte `from` on. Serves bcast,
    /// and with a part for each rank scatter. None is posted by the others.
    #[inline]
    pub fn spread(root: usize, posted: Option<Segments>, (from, into): (usize, Segments)) -> Turn<'a> {
        let then = if into.is_empty() { Then::Nothing } else { Then::One(from, into) };
        Turn { posted: posted.map(Outgoing::Data), awaits: root..root + 1, then }
    }

    /// Each rank posts its data; the root, which has memory for it, gets a block of each of `size` ranks.
    /// Serves gather.
    #[inline]
    pub fn collect(size: usize, posted: Segments, len: u64, into: Option<Segments>) -> Turn<'a> {
        let (awaits, then) = match into {
            Some(into) => (0..size, Then::Blocks(0, len, into)),
            None => (0..0, Then::Nothing),
        };
        Turn { posted: Some(Outgoing::Data(posted)), awaits, then }
    }

    /// Each rank posts its data; everybody gets a block of each of `size` ranks, from byte `from` of its data
    /// on. Serves allgather, and with a part for each rank alltoall.
    #[inline]
    pub fn exchange(size: usize, posted: Segments, from: usize, len: u64, into: Segments) -> Turn<'a> {
        Turn { posted: Some(Outgoing::Data(posted)), awaits: 0..size, then: Then::Blocks(from, len, into) }
    }

    /// The same with memory of its own for the block of each rank. Serves allgatherv.
    pub fn exchange_rows(posted: Segments, into: Vec<Segments>) -> Turn<'a> {
        Turn { posted: Some(Outgoing::Data(posted)), awaits: 0..into.len(), then: Then::Rows(into) }
    }

    /// Each rank posts its operands; those of `ranks`, combined, go into `into`, `wanted` of them. Serves
    /// reduce and the scans.
    #[inline]
    pub fn combine(
        posted: Segments,
        ranks: Range<usize>,
        (operator, wanted): (&'a Operator, Range<i64>),
        into: Segments,
    ) -> Turn<'a> {
        let then = match ranks.is_empty() {
            true => Then::Nothing,
            false => Then::Combined(Held::Lent(operator), wanted, into),
        };
        Turn { posted: Some(Outgoing::Data(posted)), awaits: ranks, then }
    }

    /// The same of all ranks for each of them. Serves allreduce, and with a part for each rank
    /// reduce_scatter.
    #[inline]
    pub fn combine_all(
        posted: Segments,
        size: usize,
        operands: (&'a Operator, Range<i64>),
        into: Segments,
    ) -> Turn<'a> {
        Turn::combine(posted, 0..size, operands, into)
    }

    /// The same, for as long as it takes.
    pub(super) fn into_owned(self) -> Turn<'static> {
        let Turn { posted, awaits, then } = self;
        let then = match then {
            Then::Nothing => Then::Nothing,
            Then::One(from, into) => Then::One(from, into),
            Then::Blocks(from, len, into) => Then::Blocks(from, len, into),
            Then::Rows(into) => Then::Rows(into),
            Then::Parts(into) => Then::Parts(into),
            Then::Wholes(into) => Then::Wholes(into),
            Then::Leave(ranks) => Then::Leave(ranks),
            Then::Combined(operator, wanted, into) => {
                Then::Combined(Held::Own(Box::new(operator.clone())), wanted, into)
            }
        };
        Turn { posted, awaits, then }
    }

    /// Does what is to be done: all that is awaited is there. Returns what [`super::Board::run`] does.
    #[inline]
    pub(super) fn finish(&self, ring: &Ring, memory: &SharedMemory, number: u64) -> Result<Ranks> {
        let posted =
            |rank: usize, from: usize, len: usize| ring.posted(memory, rank, number, from..from + len);
        let fetch = |rank: usize, from: usize, into: &Segments| {
            into.write(0, posted(rank, from, into.len() as usize));
        };
        match &self.then {
            Then::Nothing => {}
            Then::One(from, into) => fetch(self.awaits.start, *from, into),
            Then::Blocks(from, len, into) => {
                for rank in self.awaits.clone() {
                    into.write(rank as u64 * len, posted(rank, *from, *len as usize));
                }
            }
            Then::Rows(into) => {
                into.iter().enumerate().for_each(|(rank, into)| fetch(rank, 0, into));
            }
            Then::Combined(operator, wanted, into) => {
                let from = operator.len(wanted.start) as usize;
                let (count, mut ranks) = (wanted.end - wanted.start, self.awaits.clone().rev());
                let len = operator.len(count) as usize;
                if let Some(last) = ranks.next() {
                    fetch(last, from, into);
                }
                ranks.for_each(|rank| combine(operator, posted(rank, from, len), into, count));
            }
            Then::Parts(into) => return self.finish_parts(ring, (memory, number), into),
            Then::Wholes(into) => return self.finish_wholes(ring, (memory, number), into),
            Then::Leave(ranks) => return Ok(*ranks),
        }
        Ok(Ranks::NONE)
    }

    #[inline]
    fn finish_parts(
        &self,
        ring: &Ring,
        (memory, number): (&SharedMemory, u64),
        into: &[Segments],
    ) -> Result<Ranks> {
        let is_long = |rank: &usize| ring.posted_len(memory, *rank, number).is_none();
        let long: Ranks = self.awaits.clone().filter(is_long).collect();
        if long.is_empty() {
            for (rank, into) in self.awaits.clone().zip(into) {
                let part = table::own_part(ring, memory, (rank, number));
                table::fetch(ring, memory, (rank, number), part, into)?;
            }
        }
        Ok(long)
    }

    #[inline]
    fn finish_wholes(
        &self,
        ring: &Ring,
        (memory, number): (&SharedMemory, u64),
        into: &[Segments],
    ) -> Result<Ranks> {
        let mut long = Ranks::NONE;
        for (rank, into) in self.awaits.clone().zip(into) {
            match ring.posted_len(memory, rank, number) {
                Some(len) => table::fetch(ring, memory, (rank, number), 0..len, into)?,
                None => long.insert(rank),
            }
        }
        Ok(long)
    }
}
