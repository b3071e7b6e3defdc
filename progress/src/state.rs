//! State that the helper and the threads of the application share outside of the node's lock.

use crate::helped::Helped;
use crate::idle::block_on;
use crate::topology::{CoreId, Topology};
use nmad_engine::Duration;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns the topology of the cores; the helper calls it once, when it needs it.
pub(crate) type Arrange = fn(&[CoreId]) -> Topology;

/// How the helper learns of a submission that leaves something pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rest {
    /// It looks by itself.
    Awake,
    /// It sleeps on the rails' descriptors, which wake it until a thread polls the rails.
    Listens,
    /// It has to be woken.
    Sleeps,
}

/// The helper's part of a node that other threads access.
pub(crate) struct State {
    /// A [`Rest`].
    rest: AtomicU8,
    pub(crate) stop: AtomicBool,
    /// The setting was changed.
    pub(crate) changed: AtomicBool,
    /// Cores of other ranks of the job, and the function that returns the topology.
    shared_cores: Mutex<(Vec<CoreId>, Option<Arrange>)>,
    /// Wakeup descriptor that ends a sleep.
    wakeup: OwnedFd,
    helped: Mutex<Helped>,
}

impl State {
    pub(crate) fn new(helped: Helped) -> std::io::Result<State> {
        let wakeup = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let [stop, changed] = [const { AtomicBool::new(false) }; 2];
        let rest = AtomicU8::new(Rest::Awake as u8);
        Ok(State { rest, stop, changed, shared_cores: Mutex::default(), wakeup, helped: Mutex::new(helped) })
    }

    /// Something was submitted and is pending. Where the helper listens it is woken only if the rails do not
    /// wake it in time.
    #[inline]
    pub(crate) fn notify(&self, is_urgent: impl FnOnce() -> bool) {
        let rest = self.rest.load(Ordering::Relaxed);
        if rest == Rest::Sleeps as u8 || (rest == Rest::Listens as u8 && is_urgent()) {
            self.wake();
        }
    }

    /// A thread has polled the rails, which do not wake a helper that listens any more.
    #[cold]
    pub(crate) fn disarmed(&self) {
        if self.rest.load(Ordering::Relaxed) == Rest::Listens as u8 {
            self.wake();
        }
    }

    /// Ends the helper's sleep.
    #[cold]
    pub(crate) fn wake(&self) {
        self.rest.store(Rest::Awake as u8, Ordering::Release);
        let _ = rustix::io::write(&self.wakeup, &1u64.to_ne_bytes());
    }

    /// The helper is about to sleep. Called under the node's lock, so that no submission is missed.
    pub(crate) fn falls_asleep(&self, rest: Rest) {
        self.rest.store(rest as u8, Ordering::Release);
    }

    /// The helper has slept; returns whether a call of [`State::wake`] has ended that.
    pub(crate) fn awakes(&self) -> bool {
        self.rest.swap(Rest::Awake as u8, Ordering::AcqRel) == Rest::Awake as u8
    }

    /// Sleeps until one of the descriptors is readable or [`State::wake`] is called. A call that comes late
    /// ends the next sleep early.
    pub(crate) fn sleep(&self, descriptors: &[i32], bound: Duration) {
        block_on(descriptors, &self.wakeup, bound);
        let _ = rustix::io::read(&self.wakeup, &mut [0u8; 8]);
    }

    pub(crate) fn shared_cores(&self) -> MutexGuard<'_, (Vec<CoreId>, Option<Arrange>)> {
        self.shared_cores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn helped(&self) -> MutexGuard<'_, Helped> {
        self.helped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the helper must stop or adopt a changed setting.
    pub(crate) fn is_called(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.changed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `happens` ends the sleep of a helper.
    fn is_woken(rest: Rest, happens: impl FnOnce(&State)) -> bool {
        let state = State::new(Helped::default()).expect("a descriptor");
        state.falls_asleep(rest);
        happens(&state);
        state.sleep(&[], Duration::from_ns(1));
        state.awakes()
    }

    #[test]
    fn a_helper_that_listens_is_woken_when_the_rails_would_not_do_it() {
        assert!(is_woken(Rest::Listens, State::disarmed));
        assert!(is_woken(Rest::Listens, |state| state.notify(|| true)));
        assert!(!is_woken(Rest::Listens, |state| state.notify(|| false)));
        assert!(is_woken(Rest::Sleeps, |state| state.notify(|| false)));
        assert!(!is_woken(Rest::Sleeps, State::disarmed), "a thread that polls leaves a helper that rests");
    }
}
