//! The lock of a rank's memory, which other ranks take shared or alone. Turns come in the order in which they
//! were asked for, so that nobody waits for ever.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a lock; those that different ranks wait for are in different lines.
pub const WORDS: usize = 16;

const NEXT: usize = 0;
const READERS: usize = 8;
const WRITERS: usize = 9;

/// The words of a lock, in memory of one process or of several.
#[derive(Debug, Clone, Copy)]
pub struct Locks<'a>(pub &'a [AtomicU64; WORDS]);

/// A turn to have the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    number: u64,
    alone: bool,
}

impl Locks<'_> {
    /// Takes a ticket. Shared ones side by side are at the same time.
    pub fn ask(&self, alone: bool) -> Ticket {
        Ticket { number: self.0[NEXT].fetch_add(1, Ordering::AcqRel), alone }
    }

    /// Whether it is the ticket's turn: then the lock is had. Not asked again then.
    #[inline]
    pub fn has_turn(&self, ticket: Ticket) -> bool {
        let word = if ticket.alone { WRITERS } else { READERS };
        if self.0[word].load(Ordering::Acquire) != ticket.number {
            return false;
        }
        if !ticket.alone {
            // The next one may share it.
            self.0[READERS].fetch_add(1, Ordering::AcqRel);
        }
        true
    }

    /// Gives the lock back.
    pub fn release(&self, alone: bool) {
        if alone {
            self.0[READERS].fetch_add(1, Ordering::AcqRel);
        }
        self.0[WRITERS].fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> [AtomicU64; WORDS] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn shared_locks_are_had_together_and_turns_come_in_order() {
        let words = words();
        let locks = Locks(&words);
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
        let words = words();
        let count = AtomicU64::new(0);
        let add = || {
            for _ in 0..100 {
                let ticket = Locks(&words).ask(true);
                while !Locks(&words).has_turn(ticket) {
                    std::thread::yield_now();
                }
                let before = count.load(Ordering::Relaxed);
                count.store(before + 1, Ordering::Relaxed);
                Locks(&words).release(true);
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(count.into_inner(), 300);
    }
}
