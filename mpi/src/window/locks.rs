//! The locks of a window: one for each rank, which other ranks take shared or alone (`MPI_Win_lock`), and one
//! that makes accumulates atomic.
//!
//! They are words, in memory that the ranks of a node have in common where there is such memory. Ranks of
//! other nodes ask the service of the rank whose lock it is, which takes a ticket for them.

use super::memory::Common;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Bytes for a rank: words that different ranks wait for are in different lines.
pub(super) const LEN: usize = 256;

const NEXT: usize = 0;
const READERS: usize = 64;
const WRITERS: usize = 72;
const BUSY: usize = 128;

/// The words of all ranks of a node, or of one rank.
pub(super) enum Words {
    Common(Arc<Common>),
    Own(Box<[AtomicU64]>),
}

impl Words {
    /// Those of a rank that shares them with nobody.
    pub(super) fn own() -> Words {
        Words::Own((0..LEN / size_of::<u64>()).map(|_| AtomicU64::new(0)).collect())
    }

    /// The locks of the rank whose words are at this place.
    #[inline]
    pub(super) fn locks(&self, place: usize) -> Locks<'_> {
        Locks { words: self, at: place * LEN }
    }
}

/// The locks of a rank.
#[derive(Clone, Copy)]
pub(super) struct Locks<'a> {
    words: &'a Words,
    at: usize,
}

/// A turn to have the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    number: u64,
    alone: bool,
}

/// How often a thread looks whether accumulates are done before it gives its core away: an element takes some
/// nanoseconds.
const LOOKS: u32 = 200;
/// Times that it does so before it asks whether the process that holds the word still exists.
const PATIENCE: u32 = 1000;
/// Nobody is at it; otherwise the number of the process.
const FREE: u64 = 0;
/// This process, asked for once: asking is a system call.
static ME: LazyLock<u64> = LazyLock::new(|| std::process::id().into());

impl Locks<'_> {
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        match self.words {
            Words::Common(common) => common.word(self.at + offset),
            Words::Own(words) => &words[offset / size_of::<u64>()],
        }
    }

    /// Takes a ticket. Turns come in the order of tickets, so that nobody waits for ever; shared ones side by
    /// side are at the same time.
    pub(super) fn ask(&self, alone: bool) -> Ticket {
        Ticket { number: self.word(NEXT).fetch_add(1, Ordering::AcqRel), alone }
    }

    /// Whether it is the ticket's turn: then the lock is had. Not asked again then.
    #[inline]
    pub(super) fn has_turn(&self, ticket: Ticket) -> bool {
        let word = if ticket.alone { WRITERS } else { READERS };
        if self.word(word).load(Ordering::Acquire) != ticket.number {
            return false;
        }
        if !ticket.alone {
            // The next one may share it.
            self.word(READERS).fetch_add(1, Ordering::AcqRel);
        }
        true
    }

    /// Gives the lock back.
    pub(super) fn release(&self, alone: bool) {
        if alone {
            self.word(READERS).fetch_add(1, Ordering::AcqRel);
        }
        self.word(WRITERS).fetch_add(1, Ordering::AcqRel);
    }

    /// Does something while no other accumulate is done at this rank.
    #[inline]
    pub(super) fn atomically<R>(&self, work: impl FnOnce() -> R) -> R {
        let (busy, me) = (self.word(BUSY), *ME);
        let mut looks = 0;
        while let Err(holder) = busy.compare_exchange_weak(FREE, me, Ordering::Acquire, Ordering::Relaxed) {
            looks += 1;
            if looks % LOOKS > 0 {
                std::hint::spin_loop();
            } else if is_inherited(busy, holder, looks) {
                break;
            }
        }
        let answer = work();
        busy.store(FREE, Ordering::Release);
        answer
    }
}

/// Gives the core to others. True: the process that was at it is gone, and its place is ours.
#[cold]
fn is_inherited(busy: &AtomicU64, holder: u64, looks: u32) -> bool {
    std::thread::yield_now();
    let is_long = looks.is_multiple_of(LOOKS * PATIENCE) && holder != FREE;
    if !is_long || Path::new(&format!("/proc/{holder}")).exists() {
        return false;
    }
    busy.compare_exchange(holder, *ME, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_locks_are_had_together_and_turns_come_in_order() {
        let words = Words::own();
        let locks = words.locks(0);
        let [first, second] = [locks.ask(false), locks.ask(false)];
        let alone = locks.ask(true);
        let last = locks.ask(false);
        assert!(locks.has_turn(first) && locks.has_turn(second));
        assert!(!locks.has_turn(alone) && !locks.has_turn(last));
        locks.release(false);
        assert!(!locks.has_turn(alone));
        locks.release(false);
        assert!(locks.has_turn(alone) && !locks.has_turn(last));
        locks.release(true);
        assert!(locks.has_turn(last));
        locks.release(false);
    }

    #[test]
    fn one_thread_has_it_alone() {
        let words = Words::own();
        let count = AtomicU64::new(0);
        let add = || {
            for _ in 0..100 {
                let ticket = words.locks(0).ask(true);
                while !words.locks(0).has_turn(ticket) {
                    std::thread::yield_now();
                }
                let before = count.load(Ordering::Relaxed);
                count.store(before + 1, Ordering::Relaxed);
                words.locks(0).release(true);
                words.locks(0).atomically(|| ());
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(count.into_inner(), 300);
    }
}
