//! The lock of a rank's memory, which other ranks take shared or alone. Turns come in the order in which they
//! were asked for, so that nobody waits for ever.
//!
//! Who locks the memory of all ranks asks one after the other, and has some locks while it waits for others.
//! If it waited behind somebody who wants a lock alone, two of them could wait for each other for ever. So it
//! joins those who share a lock already ([`Kind::Early`]).

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a lock; those that different ranks wait for are in different lines.
pub const WORDS: usize = 16;

const NEXT: usize = 0;
const READERS: usize = 8;
const WRITERS: usize = 9;

/// The words of a lock, in memory of one process or of several.
#[derive(Debug, Clone, Copy)]
pub struct Locks<'a>(pub &'a [AtomicU64; WORDS]);

/// How a lock is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// With others.
    Shared,
    /// Alone.
    Alone,
    /// With others, before its turn if they have it.
    Early,
}

impl Kind {
    /// The kind with this number.
    pub(crate) fn of(number: u8) -> Kind {
        match number {
            0 => Kind::Shared,
            1 => Kind::Alone,
            _ => Kind::Early,
        }
    }
}

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

    /// Has the lock at once if others share it; false: nobody does.
    pub fn join(&self) -> bool {
        let mut given_back = self.0[WRITERS].load(Ordering::Acquire);
        loop {
            // So many share it, since all turns before this one have come. It only grows.
            let shares = self.0[READERS].load(Ordering::Acquire).wrapping_sub(given_back);
            if shares == 0 {
                return false;
            }
            // Whoever wants it alone waits for one more to give it back.
            let less = given_back.wrapping_sub(1);
            match self.0[WRITERS].compare_exchange_weak(given_back, less, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(now) => given_back = now,
            }
        }
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

    #[test]
    fn a_shared_lock_is_joined_before_a_turn_that_waits_and_never_one_that_is_had_alone() {
        let words = words();
        let locks = Locks(&words);
        assert!(!locks.join());
        let [first, alone, last] = [locks.ask(false), locks.ask(true), locks.ask(false)];
        assert!(locks.has_turn(first) && locks.join() && locks.join());
        locks.release(false);
        locks.release(false);
        assert!(!locks.has_turn(alone) && locks.join());
        locks.release(false);
        locks.release(false);
        assert!(!locks.join() && locks.has_turn(alone) && !locks.join());
        locks.release(true);
        assert!(locks.has_turn(last) && locks.join());
        locks.release(false);
        locks.release(false);
        assert!(!locks.join() && locks.has_turn(locks.ask(true)));
    }

    #[test]
    fn threads_that_join_and_threads_alone_are_never_together() {
        const ALONE: u64 = 1 << 32;
        let (words, inside) = (words(), AtomicU64::new(0));
        let locks = Locks(&words);
        let until = |look: &dyn Fn() -> bool| {
            while !look() {
                std::thread::yield_now();
            }
        };
        let share = || {
            for _ in 0..2000 {
                if !locks.join() {
                    let ticket = locks.ask(false);
                    until(&|| locks.has_turn(ticket));
                }
                assert!(inside.fetch_add(1, Ordering::Relaxed) < ALONE);
                inside.fetch_sub(1, Ordering::Relaxed);
                locks.release(false);
            }
        };
        let alone = || {
            for _ in 0..2000 {
                let ticket = locks.ask(true);
                until(&|| locks.has_turn(ticket));
                assert_eq!(inside.fetch_add(ALONE, Ordering::Relaxed), 0);
                inside.fetch_sub(ALONE, Ordering::Relaxed);
                locks.release(true);
            }
        };
        std::thread::scope(|scope| {
            (0..2).for_each(|_| drop(scope.spawn(share)));
            (0..2).for_each(|_| drop(scope.spawn(alone)));
        });
    }
}
