//! Parts of different lengths on the board: gatherv, scatterv, alltoallv.
//!
//! Nobody knows whether the parts of another rank fit into a post. Where every rank hears of every rank that
//! has parts, all know: each of those posts a table of where its parts begin, with the parts, or that they
//! are too long. If somebody's are, all take the way of long parts, and the next calls do so without asking
//! here: one the first time, then three, seven and so on, on all ranks alike.
//!
//! Where only the root hears of the parts, each rank decides about its own: one that is too long is left to a
//! message, which the root expects when it has seen that post.

use super::{Board, POST_MAX, Pause};
use crate::error::{Class, Result};
use newmadeleine::Segments;
use std::ops::Range;

/// Bytes of an entry of a table.
const ENTRY: usize = size_of::<u16>();
/// Most calls in a row that are not asked, as a power of two.
const UNASKED_MAX: u32 = 6;

/// Calls with parts that are not asked on the board.
#[derive(Debug, Default)]
pub(super) struct Unasked {
    /// Number of calls in a row whose parts were too long.
    times: u32,
    /// Calls that are not asked yet.
    left: u32,
}

impl Unasked {
    fn too_long(&mut self) {
        self.times = (self.times + 1).min(UNASKED_MAX);
        self.left = (1 << self.times) - 1;
    }
}

impl Board {
    /// Each rank of `senders` posts a part for each rank, as `out` names them, and each rank gets its part of
    /// each of them into the memory that `into` names. False: some rank's parts are too long, and nobody got
    /// any.
    ///
    /// # Errors
    /// A part is longer than its receiver expects (`MPI_ERR_TRUNCATE`), or what `out`, `into` or `pause` say.
    pub fn parts(
        &mut self,
        senders: Range<usize>,
        out: impl Fn(usize) -> Result<Segments>,
        into: impl Fn(usize) -> Result<Segments>,
        pause: Pause<'_>,
    ) -> Result<bool> {
        if self.unasked.left > 0 {
            self.unasked.left -= 1;
            return Ok(false);
        }
        let is_sender = senders.contains(&self.ring.me);
        if is_sender {
            // Errors of arguments are found before the others wait for a post.
            self.outgoing.clear();
            for rank in 0..self.ring.size {
                self.outgoing.push(out(rank)?);
            }
        }
        self.number += 1;
        if is_sender {
            self.post_parts(pause)?;
        }
        self.look(senders.clone(), pause)?;
        let fits = senders.clone().all(|rank| self.posted_len(rank).is_some());
        let fetched = match fits {
            true => senders.clone().try_for_each(|rank| self.fetch(rank, self.own_part(rank), &into(rank)?)),
            false => Ok(()),
        };
        self.ring.say_done(&self.memory, self.number);
        match fits {
            true => self.unasked.times = 0,
            false => self.unasked.too_long(),
        }
        fetched.map(|()| fits)
    }

    /// Each rank posts a part for the root, the only one that has `into`: the memory where the part of each
    /// rank goes. Returns the ranks whose parts are too long, as far as they matter here: at the root all,
    /// elsewhere this one.
    ///
    /// # Errors
    /// A part is longer than the root expects (`MPI_ERR_TRUNCATE`), or what `into` or `pause` say.
    pub fn collect_parts(
        &mut self,
        own: &Segments,
        into: Option<impl Fn(usize) -> Result<Segments>>,
        pause: Pause<'_>,
    ) -> Result<Vec<usize>> {
        self.number += 1;
        let post = self.open(own.len() as usize, pause)?;
        self.ring.post(&self.memory, post, own);
        let ranks = if into.is_some() { 0..self.ring.size } else { self.ring.me..self.ring.me + 1 };
        self.look(ranks.clone(), pause)?;
        let fetch = |rank: usize| match (self.posted_len(rank), &into) {
            (Some(len), Some(into)) => self.fetch(rank, 0..len, &into(rank)?),
            _ => Ok(()),
        };
        let fetched = ranks.clone().try_for_each(fetch);
        let left = ranks.filter(|rank| self.posted_len(*rank).is_none()).collect();
        self.ring.say_done(&self.memory, self.number);
        fetched.map(|()| left)
    }

    /// Bytes of a table, which has where each part begins and where the last one ends.
    fn table_len(&self) -> usize {
        (ENTRY * (self.ring.size + 1)).next_multiple_of(size_of::<u64>())
    }

    /// Shows the outgoing parts to all, or that they are too long.
    fn post_parts(&mut self, pause: Pause<'_>) -> Result<()> {
        let mut end = self.table_len();
        let len = self.outgoing.iter().fold(end as u64, |len, part| len.saturating_add(part.len()));
        let post = self.open(len as usize, pause)?;
        if len <= POST_MAX as u64 {
            for (rank, part) in self.outgoing.iter().enumerate() {
                self.ring.put(&self.memory, post, ENTRY * rank, &(end as u16).to_ne_bytes());
                for piece in part.slices() {
                    self.ring.put(&self.memory, post, end, piece);
                    end += piece.len();
                }
            }
            self.ring.put(&self.memory, post, ENTRY * self.outgoing.len(), &(end as u16).to_ne_bytes());
        }
        self.ring.show(&self.memory, post);
        self.outgoing.clear();
        Ok(())
    }

    /// How many bytes a rank has posted; none if they are too many.
    fn posted_len(&self, rank: usize) -> Option<usize> {
        self.ring.posted_len(&self.memory, rank, self.number)
    }

    /// Where the post of a rank has the part for us, as its table says.
    fn own_part(&self, rank: usize) -> Range<usize> {
        let entry = |index: usize| {
            let bytes = ENTRY * index..ENTRY * (index + 1);
            let bytes = self.ring.posted(&self.memory, rank, self.number, bytes);
            usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]))
        };
        let begin = entry(self.ring.me);
        begin..entry(self.ring.me + 1).max(begin)
    }

    /// Copies a part of the post of a rank.
    fn fetch(&self, rank: usize, part: Range<usize>, into: &Segments) -> Result<()> {
        let (len, room) = (part.len(), into.len());
        if len as u64 > room {
            return Err(Class::TRUNCATE
                .error(format!("rank {rank} sends {len} bytes to this rank, which expects {room} of it")));
        }
        into.write(0, self.ring.posted(&self.memory, rank, self.number, part));
        Ok(())
    }
}
