//! The locks of a window: one for each rank, which other ranks take shared or alone (`MPI_Win_lock`), and one
//! that makes accumulates atomic; and beside them the words of copies that the rank does with others.
//!
//! They are words, in memory that the ranks of a node have in common where there is such memory. Ranks of
//! other nodes ask the service of the rank whose lock it is, which takes a ticket for them.

use super::memory::Common;
use crate::sleepers::Sleepers;
use newmadeleine::joint::{self, JointCopy};
use nmad_rma::locks as rma;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Bytes for a rank: its words are in lines of their own.
pub(super) const LEN: usize = 256;

/// The words of a rank.
const WORDS: usize = LEN / size_of::<u64>();
/// The process that combines elements; those before are of the lock that ranks take.
const BUSY: usize = 16;
/// The word of the ranks that sleep until the lock is free.
const SLEEPERS: usize = 17;
/// The first of the words for joint copies.
const JOINT: usize = 24;
const _: () =
    assert!(rma::WORDS <= BUSY && BUSY < SLEEPERS && SLEEPERS < JOINT && JOINT + joint::WORDS <= WORDS);

/// The words of all ranks of a node, or of one rank.
pub(super) enum Words {
    Common(Arc<Common>),
    Own(Box<[AtomicU64; WORDS]>),
}

impl Words {
    /// Those of a rank that shares them with nobody.
    pub(super) fn own() -> Words {
        Words::Own(Box::new(std::array::from_fn(|_| AtomicU64::new(0))))
    }

    /// The locks of the rank whose words are at this place.
    #[inline]
    pub(super) fn locks(&self, place: usize) -> Locks<'_> {
        Locks(match self {
            Words::Common(common) => common.words(place * LEN),
            Words::Own(words) => words,
        })
    }
}

/// The locks of a rank.
#[derive(Clone, Copy)]
pub(super) struct Locks<'a>(&'a [AtomicU64; WORDS]);

/// How often a thread looks whether accumulates are done before it gives its core away: an element takes some
/// nanoseconds.
const LOOKS: u32 = 200;
/// Times that it does so before it asks whether the process that holds the word still exists.
const PATIENCE: u32 = 1000;
/// Nobody is at it; otherwise the number of the process.
const FREE: u64 = 0;
/// This process, asked for once: asking is a system call.
static ME: LazyLock<u64> = LazyLock::new(|| std::process::id().into());

impl<'a> Locks<'a> {
    /// The one that ranks take.
    #[inline]
    pub(super) fn turns(self) -> rma::Locks<'a> {
        rma::Locks(self.0.first_chunk().expect("it has fewer words"))
    }

    /// Returns the ranks that sleep until it is free.
    pub(super) fn sleepers(self) -> Sleepers<'a> {
        Sleepers(&self.0[SLEEPERS])
    }

    /// Copies to and from its memory that it has a part in.
    #[inline]
    pub(super) fn joint(self) -> JointCopy<'a> {
        JointCopy(self.0[JOINT..].first_chunk().expect("it has fewer words"))
    }

    /// Waits until no accumulate is done at this rank, and keeps it so.
    #[inline(always)]
    pub(super) fn hold(self) -> Held<'a> {
        let (busy, me) = (&self.0[BUSY], *ME);
        if let Err(holder) = busy.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed) {
            wait_for(busy, holder);
        }
        Held(busy)
    }
}

/// No other accumulate is done at a rank as long as this exists.
pub(super) struct Held<'a>(&'a AtomicU64);

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(FREE, Ordering::Release);
    }
}

#[cold]
fn wait_for(busy: &AtomicU64, mut holder: u64) {
    let mut looks = 0;
    loop {
        looks += 1;
        if looks % LOOKS > 0 {
            std::hint::spin_loop();
        } else if is_inherited(busy, holder, looks) {
            return;
        }
        match busy.compare_exchange_weak(FREE, *ME, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => holder = other,
        }
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
    fn one_thread_combines_at_a_time() {
        let words = Words::own();
        let count = AtomicU64::new(0);
        let add = || {
            for _ in 0..100 {
                let _held = words.locks(0).hold();
                let before = count.load(Ordering::Relaxed);
                std::thread::yield_now();
                count.store(before + 1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(count.into_inner(), 300);
    }
}
