//! Sleep flag and wakeup descriptor: a side that is about to sleep sets its flag; a side that has written
//! something signals the wakeup descriptor of a sleeping peer.
//!
//! The sleeper sets its flag and then checks the ring once more; the writer writes and then checks the
//! flag. With a full fence between the store and the load of each side, at least one of them sees the other
//! (Dekker's argument): either the sleeper finds the data, or the writer wakes it. While neither sleeps, no
//! system call is made.
//!
//! A fence in the writer costs each packet about 200 ns between cores that share no cache, since it waits
//! until the cache line has been transferred. Sleeping is rare and slow anyway, so the sleeper has the
//! system execute the fence on all cores that run a registered process (membarrier(2), global expedited),
//! and the writer needs none.

use crate::node::word::Word;
use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

/// The side that executes the writer's fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// The writer itself.
    Own,
    /// The sleeper, with [`fence_all`] after [`raise`].
    Sleeper,
}

/// Sets the sleep flag. The caller checks for work once more after this.
#[inline]
pub fn raise<W: Word>(flag: &W) {
    flag.store(1, Ordering::Relaxed);
    W::full_fence();
}

/// Clears the sleep flag.
#[inline]
pub fn lower<W: Word>(flag: &W) {
    flag.store(0, Ordering::Relaxed);
}

/// Returns whether the other side must be woken for data written before. True once for each sleep.
#[inline]
pub fn is_asleep<W: Word>(flag: &W, fence: Fence) -> bool {
    match fence {
        Fence::Own => W::full_fence(),
        Fence::Sleeper => compiler_fence(Ordering::SeqCst),
    }
    flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0
}

/// Returns whether fences of other processes reach this one, and fences of this one reach all registered
/// processes. Registers this process the first time.
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

    /// Can only fail on two cores that run at once; loom tries [`Fence::Own`] in all orders.
    #[test]
    fn the_sleepers_fence_replaces_the_writers() {
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
        assert!(woken.iter().zip(&sees).all(|(a, b)| *a || *b), "asleep although there is data");
    }
}
