//! Parts of different lengths on the board: gatherv, scatterv, alltoallv.
//!
//! Nobody knows whether the parts of another rank fit into a post. Where every rank hears of every rank that
//! has parts, all know: each of those posts a table of where its parts begin, with the parts, or that they
//! are too long. If somebody's are, all take the way of long parts: that rank at once, the others when they
//! have seen all posts. The next blocking calls do so without asking here: one the first time, then three,
//! seven and so on, on all ranks alike. Nonblocking calls ask each time, since ranks learn the answers at
//! different times, between different calls.
//!
//! Where only the root hears of the parts, each rank decides about its own: one that is too long is left to a
//! message, which the root expects when it has seen that post.

use super::ring::POSTED_MAX;
use super::turn::{Outgoing, Then};
use super::{Board, Pause, Ranks, Turn, table};
use crate::error::Result;
use nmad_engine::Segments;
use std::ops::Range;

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

/// Lists of memory whose own memory is used again.
#[derive(Debug, Default)]
pub(super) struct Lists(Vec<Vec<Segments>>);

impl Lists {
    /// Most lists that are kept: those of two operations.
    const KEPT: usize = 4;

    /// A list of what `of` says of some ranks.
    fn of(&mut self, ranks: Range<usize>, of: impl Fn(usize) -> Result<Segments>) -> Result<Vec<Segments>> {
        let mut list = self.0.pop().unwrap_or_default();
        list.reserve(ranks.len());
        for rank in ranks {
            list.push(of(rank)?);
        }
        Ok(list)
    }

    /// Keeps the lists of an operation that is over.
    #[inline]
    pub(super) fn keep(&mut self, turn: Turn<'_>) {
        let posted = match turn.posted {
            Some(Outgoing::Parts(list)) => Some(list),
            _ => None,
        };
        let into = match turn.then {
            Then::Parts(list) | Then::Wholes(list) => Some(list),
            _ => None,
        };
        for mut list in [posted, into].into_iter().flatten() {
            if self.0.len() < Lists::KEPT {
                list.clear();
                self.0.push(list);
            }
        }
    }
}

impl Board {
    /// Each rank of `senders` posts a part for each rank, as `out` names them, and each rank gets its part of
    /// each of them into the memory that `into` names. Serves scatterv and alltoallv.
    ///
    /// # Errors
    /// What `out` and `into` say.
    #[inline]
    pub fn parts(
        &mut self,
        senders: Range<usize>,
        out: impl Fn(usize) -> Result<Segments>,
        into: impl Fn(usize) -> Result<Segments>,
    ) -> Result<Turn<'static>> {
        let mut posted = None;
        if senders.contains(&self.ring.me) {
            let list = self.lists.of(0..self.ring.size, out)?;
            let is_long = table::len(&list) > POSTED_MAX as u64;
            posted = Some(Outgoing::Parts(list));
            if is_long {
                return Ok(Turn { posted, awaits: 0..0, then: self.leave() });
            }
        }
        let into = self.lists.of(senders.clone(), into)?;
        Ok(Turn { posted, awaits: senders, then: Then::Parts(into) })
    }

    /// Each rank posts a part for the root, the only one that has `into`: the memory where the part of each
    /// rank goes. Serves gatherv.
    ///
    /// # Errors
    /// What `into` says.
    #[inline]
    pub fn collect_parts(
        &mut self,
        own: Segments,
        into: Option<impl Fn(usize) -> Result<Segments>>,
    ) -> Result<Turn<'static>> {
        let all = 0..self.ring.size;
        let (awaits, then) = match into {
            Some(into) => (all.clone(), Then::Wholes(self.lists.of(all, into)?)),
            None if own.len() > POSTED_MAX as u64 => (0..0, self.leave()),
            None => (0..0, Then::Nothing),
        };
        Ok(Turn { posted: Some(Outgoing::Data(own)), awaits, then })
    }

    /// Our own data is too long.
    fn leave(&self) -> Then<'static> {
        Then::Leave(Ranks::from_iter([self.ring.me]))
    }

    /// As [`Board::run`], for such operations.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn run_parts(&mut self, turn: Turn<'_>, pause: Pause<'_>) -> Result<Ranks> {
        let left = self.run(&turn, pause);
        self.lists.keep(turn);
        left
    }

    /// The same with [`Board::parts`], or leaves those to messages without asking: the same on all ranks.
    ///
    /// # Errors
    /// As there, or what `turn` says.
    #[inline]
    pub fn ask_parts<'t>(
        &mut self,
        turn: impl FnOnce(&mut Board) -> Result<Turn<'t>>,
        pause: Pause<'_>,
    ) -> Result<Ranks> {
        if self.unasked.left > 0 {
            self.unasked.left -= 1;
            return Ok(Ranks::from_iter([self.ring.me]));
        }
        let turn = turn(self)?;
        let left = self.run_parts(turn, pause);
        match &left {
            Ok(left) if !left.is_empty() => self.unasked.too_long(),
            _ => self.unasked.times = 0,
        }
        left
    }
}
