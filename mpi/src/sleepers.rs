//! Sleep and wakeup of ranks that wait for memory of their node to change.
//!
//! A word of the memory has a bit for each rank that sleeps, or is about to. A rank sets its bit, looks at
//! the memory once more, and sleeps. A rank that has changed the memory looks at the word; if there are bits
//! it clears them, and sends these ranks an acknowledgement, which ends a sleep as every packet does. So
//! nothing is sent while nobody sleeps, and a sleeping rank still answers messages of others.
//!
//! The sleeper's fence takes effect on the cores of all ranks of the node, as in the driver `shm`
//! (`membarrier(2)`), so the other side needs none. Where a system has no such fence, a rank that looks at
//! the word executes one. Should both fail, the sleep is over within 50 ms.

use newmadeleine::engine::{Engine, PeerId};
use newmadeleine::{fence_all, shares_fences};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};

/// The word of sleeping ranks. Ranks beyond the 64th share bits, and are woken together.
pub(crate) struct Sleepers<'m>(pub(crate) &'m AtomicU64);

/// The bit of a rank, by its number among those that see the memory.
const fn bit(rank: usize) -> u64 {
    1 << (rank % u64::BITS as usize)
}

impl Sleepers<'_> {
    /// Sets the bit of rank `me`. Whether it may sleep now, as it has looked at the memory since its bit was
    /// set, and nobody has changed that; `is_set` belongs to its wait.
    pub(crate) fn may_sleep(&self, me: usize, is_set: &mut bool) -> bool {
        let was_set = self.0.fetch_or(bit(me), Ordering::SeqCst) & bit(me) != 0;
        if std::mem::replace(is_set, true) && was_set {
            return true;
        }
        fence_all();
        false
    }

    /// Clears the bit of rank `me`, which sleeps no more.
    pub(crate) fn is_awake(&self, me: usize) {
        self.0.fetch_and(!bit(me), Ordering::Relaxed);
    }

    /// Returns the bits of the ranks to wake, after the memory was changed.
    #[inline]
    pub(crate) fn take(&self) -> u64 {
        match shares_fences() {
            true => compiler_fence(Ordering::SeqCst),
            false => fence(Ordering::SeqCst),
        }
        match self.0.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.0.swap(0, Ordering::SeqCst),
        }
    }
}

/// Wakes the ranks of these bits: `all` are the numbers and processes of those that see the memory, without
/// the caller.
#[cold]
pub(crate) fn wake(engine: &mut Engine, all: impl Iterator<Item = (usize, u32)>, bits: u64) {
    all.filter(|(rank, _)| bits & bit(*rank) != 0).for_each(|(_, process)| engine.wake(PeerId(process)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of two looks of a rank that goes to sleep and of a change by another one.
    #[test]
    fn a_change_is_seen_or_wakes() {
        for at in 0..=4 {
            let (word, mut is_changed, mut woken) = (AtomicU64::new(0), false, 0);
            let mut change = |step: usize| {
                if step == at && !is_changed {
                    is_changed = true;
                    woken |= Sleepers(&word).take();
                }
                is_changed
            };
            let (mut is_set, mut sleeps) = (false, false);
            // Looks, and pauses; it sleeps in a pause if it may.
            for step in 0..3 {
                if change(step) {
                    sleeps = false;
                    break;
                }
                sleeps = Sleepers(&word).may_sleep(3, &mut is_set);
                if sleeps {
                    break;
                }
            }
            (0..=4).for_each(|step| _ = change(step));
            assert!(!sleeps || woken == bit(3), "the change {at} is missed");
        }
    }

    #[test]
    fn a_rank_looks_again_after_each_ring() {
        let word = AtomicU64::new(0);
        let (sleepers, mut is_set) = (Sleepers(&word), false);
        assert!(!sleepers.may_sleep(0, &mut is_set), "first it looks");
        assert!(sleepers.may_sleep(0, &mut is_set));
        assert_eq!((sleepers.take(), sleepers.take()), (1, 0), "nobody is woken twice");
        assert!(!sleepers.may_sleep(0, &mut is_set), "it looks at what has changed");
        // Another wait finds the bit of one that has ended without a ring.
        assert!(!sleepers.may_sleep(0, &mut false));
        sleepers.is_awake(0);
        assert_eq!(sleepers.take(), 0);
    }
}
