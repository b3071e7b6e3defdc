//! Operations of nonblocking calls: each has its turn in the order of the calls, and ends at the first look
//! that finds all posts it needs. Its own data is posted in the call, unless its place is not free yet.

use super::parts::Lists;
use super::ring::Ring;
use super::{Ranks, Turn};
use crate::error::Result;
use nmad_drivers::node::Segment as SharedMemory;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Whether an operation has ended, and how, as [`super::Board::run`] says: known without the board, which
/// another thread may have.
pub type Flag = Arc<OnceLock<Result<Ranks>>>;

/// All of them.
#[derive(Debug)]
pub(super) struct Laters {
    ring: Ring,
    /// Operations begun.
    number: u64,
    /// Those that have not ended; the first one has not.
    open: VecDeque<Later>,
}

/// An operation that has begun.
#[derive(Debug)]
struct Later {
    number: u64,
    turn: Turn<'static>,
    is_posted: bool,
    ended: Flag,
}

impl Laters {
    pub(super) fn new(ring: Ring) -> Laters {
        Laters { ring, number: 0, open: VecDeque::new() }
    }

    pub(super) fn start(&mut self, memory: &SharedMemory, turn: Turn<'_>, lists: &mut Lists) -> Flag {
        self.number += 1;
        let ended = Flag::default();
        let (number, turn) = (self.number, turn.into_owned());
        self.open.push_back(Later { number, turn, is_posted: false, ended: ended.clone() });
        self.go_on(memory, lists);
        ended
    }

    /// Returns whether the memory was changed.
    #[inline]
    pub(super) fn go_on(&mut self, memory: &SharedMemory, lists: &mut Lists) -> bool {
        !self.open.is_empty() && self.go_on_with_all(memory, lists)
    }

    #[cold]
    fn go_on_with_all(&mut self, memory: &SharedMemory, lists: &mut Lists) -> bool {
        let (mut has_posted, mut has_ended) = (false, false);
        for index in 0..self.open.len() {
            // Posts are in order.
            if !self.open[index].is_posted {
                if !self.post(memory, index) {
                    break;
                }
                has_posted = true;
            }
            has_ended |= self.end(memory, index);
        }
        while let Some(first) = self.open.pop_front_if(|one| one.ended.get().is_some()) {
            lists.keep(first.turn);
        }
        if has_ended {
            let done = self.done();
            self.ring.say_done(memory, done);
        }
        has_posted || has_ended
    }

    /// Up to which operation we are done with all.
    fn done(&self) -> u64 {
        self.open.front().map_or(self.number, |first| first.number - 1)
    }

    /// Posts what an operation posts, if the place for it is free.
    fn post(&mut self, memory: &SharedMemory, index: usize) -> bool {
        let Later { number, turn, .. } = &self.open[index];
        if let Some(posted) = &turn.posted {
            let Some(post) = self.ring.open(memory, *number, posted.len() as usize) else { return false };
            posted.post(&self.ring, memory, post);
        }
        self.open[index].is_posted = true;
        true
    }

    /// Ends an operation that was posted and has not ended, if all is there.
    fn end(&mut self, memory: &SharedMemory, index: usize) -> bool {
        let Later { number, turn, ended, .. } = &self.open[index];
        let number = *number;
        if ended.get().is_some() || !turn.awaits.clone().all(|rank| self.ring.is_there(memory, rank, number))
        {
            return false;
        }
        // Nobody else sets it.
        ended.set(turn.finish(&self.ring, memory, number)).is_ok()
    }
}
