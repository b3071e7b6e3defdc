//! Operations of nonblocking calls: each has its turn in the order of the calls, as those of blocking ones
//! do, and ends when somebody looks and all is there. What it posts is posted in the call, unless its slot is
//! not free yet.

use super::{Board, Turn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an operation has ended: known without the board, which another thread may have.
pub type Flag = Arc<AtomicBool>;

/// An operation that has begun.
#[derive(Debug)]
pub(super) struct Later {
    number: u64,
    turn: Turn<'static>,
    is_posted: bool,
    ended: Flag,
}

impl Later {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn is_posted(&self) -> bool {
        self.is_posted
    }
}

impl Board {
    /// Begins an operation that ends later, or at once.
    pub fn start(&mut self, turn: Turn<'_>) -> Flag {
        self.number += 1;
        let ended = Flag::default();
        let (number, turn) = (self.number, turn.into_owned());
        self.later.push_back(Later { number, turn, is_posted: false, ended: ended.clone() });
        self.go_on();
        ended
    }

    /// Goes on with such operations, as far as they can.
    #[inline]
    pub fn go_on(&mut self) {
        if !self.later.is_empty() {
            self.go_on_with_all();
        }
    }

    #[cold]
    fn go_on_with_all(&mut self) {
        let mut has_ended = false;
        for index in 0..self.later.len() {
            // Posts are in order.
            if !self.later[index].is_posted && !self.post_later(index) {
                break;
            }
            has_ended |= self.end_later(index);
        }
        while self.later.front().is_some_and(|one| one.ended.load(Ordering::Relaxed)) {
            self.later.pop_front();
        }
        if has_ended {
            self.say_done(self.number - u64::from(self.is_busy));
        }
    }

    /// Posts what an operation posts, if its slot is free.
    fn post_later(&mut self, index: usize) -> bool {
        let number = self.later[index].number;
        if !self.is_free(number) {
            return false;
        }
        if let Some(posted) = &self.later[index].turn.posted {
            self.post(number, posted);
        }
        self.later[index].is_posted = true;
        true
    }

    /// Ends an operation that was posted and has not ended, if all is there.
    fn end_later(&mut self, index: usize) -> bool {
        let Later { number, turn, ended, .. } = &self.later[index];
        let (number, ranks) = (*number, turn.awaits.clone());
        if ended.load(Ordering::Relaxed) || !ranks.clone().all(|rank| self.is_there(rank, number)) {
            return false;
        }
        turn.finish(self, number);
        ended.store(true, Ordering::Release);
        self.learn(number, &ranks);
        true
    }
}
