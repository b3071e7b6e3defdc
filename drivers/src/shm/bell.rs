//! Who sleeps says so; who has left something wakes whoever said so.
//!
//! The sleeper raises a flag and then looks once more; the other side leaves something and then looks at the
//! flag. Each has a full fence between its store and its load, so at least one of them sees the other
//! (Dekker's argument): either the sleeper finds what was left, or it is woken. While nobody sleeps, nobody
//! pays a system call, and where the sleeper makes the fence of both sides ([`super::barrier`]), nobody pays
//! for a fence either.

use super::word::Word;
use std::sync::atomic::{Ordering, compiler_fence};

/// Who makes the fence of the side that leaves something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// That side itself.
    Own,
    /// The sleeper, after [`raise`].
    Sleeper,
}

/// About to sleep. Look once more after this.
#[inline]
pub fn raise<W: Word>(flag: &W) {
    flag.store(1, Ordering::Relaxed);
    W::full_fence();
}

/// Awake again.
#[inline]
pub fn lower<W: Word>(flag: &W) {
    flag.store(0, Ordering::Relaxed);
}

/// Whether the other side has to be woken for what was left before. It is then nobody else's business.
#[inline]
pub fn is_asleep<W: Word>(flag: &W, fence: Fence) -> bool {
    match fence {
        Fence::Own => W::full_fence(),
        Fence::Sleeper => compiler_fence(Ordering::SeqCst),
    }
    flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0
}

#[cfg(test)]
mod tests {
    use super::super::barrier;
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    /// Needs two cores that run at once to find anything; loom tries the fence of one's own in all orders.
    #[test]
    fn the_sleepers_barrier_stands_for_the_fence_of_the_other_side() {
        if !barrier::is_shared() {
            return println!("the system has no such barrier");
        }
        const ROUNDS: usize = 20_000;
        let (asleep, left) = (AtomicU64::new(0), AtomicU64::new(0));
        let turn = Barrier::new(2);
        let each = |mut act: Box<dyn FnMut() -> bool + Send + '_>| {
            let mut seen = Vec::new();
            for _ in 0..ROUNDS {
                turn.wait();
                seen.push(act());
                turn.wait();
                asleep.store(0, Ordering::Relaxed);
                left.store(0, Ordering::Relaxed);
            }
            seen
        };
        let leaves = || {
            left.store(1, Ordering::Release);
            is_asleep(&asleep, Fence::Sleeper)
        };
        let sleeps = || {
            raise(&asleep);
            barrier::make();
            left.load(Ordering::Acquire) == 1
        };
        let (woken, sees) = std::thread::scope(|scope| {
            let leaver = scope.spawn(|| each(Box::new(leaves)));
            (each(Box::new(sleeps)), leaver.join().expect("it ends"))
        });
        assert!(woken.iter().zip(&sees).all(|(a, b)| *a || *b), "somebody sleeps, and something is there");
    }
}
