//! Sleeping and waking: a side that is about to sleep raises a flag; a side that has written something rings
//! the wakeup descriptor of a sleeper.
//!
//! The sleeper raises its flag and then looks at the ring once more; the writer writes and then looks at the
//! flag. With a full fence between the store and the load of each side, at least one of them sees the other
//! (Dekker's argument): either the sleeper finds what was written, or the writer wakes it. Without a sleeper
//! nobody pays a system call.
//!
//! A fence in the writer costs each packet about 200 ns between cores that share no cache, since it waits
//! until the line has come over. Sleeping is rare and slow anyway, so the sleeper has the system make the
//! fence on all cores that run a process of ours (membarrier(2), global expedited), and the writer needs
//! none.

use crate::node::word::Word;
use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

/// Which side makes the writer's fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// The writer itself.
    Own,
    /// The sleeper, with [`fence_all`] after [`raise`].
    Sleeper,
}

/// This side is about to sleep. It looks once more after this.
#[inline]
pub fn raise<W: Word>(flag: &W) {
    flag.store(1, Ordering::Relaxed);
    W::full_fence();
}

/// This side is awake again.
#[inline]
pub fn lower<W: Word>(flag: &W) {
    flag.store(0, Ordering::Relaxed);
}

/// Whether the other side must be woken for what was written before. True once for each sleep.
#[inline]
pub fn is_asleep<W: Word>(flag: &W, fence: Fence) -> bool {
    match fence {
        Fence::Own => W::full_fence(),
        Fence::Sleeper => compiler_fence(Ordering::SeqCst),
    }
    flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0
}

/// Whether fences of other processes reach this one, and those of this one reach all processes that
/// registered. Registers this process the first time.
pub fn shares_fences() -> bool {
    static SHARED: OnceLock<bool> = OnceLock::new();
    let register = || {
        membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
            && membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    };
    *SHARED.get_or_init(register)
}

/// A full fence on all cores that run a registered process.
pub fn fence_all() {
    if shares_fences() {
        let _ = membarrier(MembarrierCommand::GlobalExpedited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;

    /// Needs two cores that run at once to find anything; loom tries [`Fence::Own`] in all orders.
    #[test]
    fn the_sleepers_fence_stands_for_the_writers() {
        if !shares_fences() {
            return println!("the system has no such fence");
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
        let writes = || {
            left.store(1, Ordering::Release);
            is_asleep(&asleep, Fence::Sleeper)
        };
        let sleeps = || {
            raise(&asleep);
            fence_all();
            left.load(Ordering::Acquire) == 1
        };
        let (woken, sees) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| each(Box::new(writes)));
            (each(Box::new(sleeps)), writer.join().expect("it ends"))
        });
        assert!(woken.iter().zip(&sees).all(|(a, b)| *a || *b), "somebody sleeps, and something is there");
    }
}
