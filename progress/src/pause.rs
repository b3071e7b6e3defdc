//! Waiting for events that the node does not know: several things at once, or work of the caller that
//! continues when messages have arrived.

use crate::idle::Stage;
use crate::locked::Outcome;
use crate::node::Node;
use crate::shared::Shared;
use nmad_engine::{Duration, Engine, Instant, RequestId};
use std::sync::atomic::Ordering;

/// Longest sleep while the node does not know the awaited event. A thread that was about to sleep when
/// [`Node::rouse`] was called is late by at most this.
const NAP_MAX: Duration = Duration::from_ms(2);

/// Time of one wait without any event; make one for each wait.
#[derive(Debug, Default)]
pub struct Patience {
    active: Option<Instant>,
}

impl Node {
    /// Takes the result of the request, if it has ended; does not turn the pump. A result is given once.
    #[inline]
    pub fn take(&self, request: RequestId) -> Option<Outcome> {
        self.shared.lock().engine.take(request)
    }

    /// Waits until the request ends or `interrupted` is true, which is checked before each turn of the
    /// pump.
    #[inline]
    pub fn wait_unless(&self, request: RequestId, interrupted: impl Fn() -> bool) -> Option<Outcome> {
        let ended = self.wait_until(None, |core| match core.take(request) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(_) if interrupted() => Ok(None),
            Err(awaited) => Err(awaited),
        });
        ended.flatten()
    }

    /// Turns the pump once, as a thread that waits. If nothing has happened for long, yields or sleeps as
    /// [`crate::Idle`] says, until a request ends or [`Node::rouse`] is called, for at most `nap` if given.
    pub fn pause(&self, patience: &mut Patience, nap: Option<Duration>) {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        let happened = self.shared.turn(&mut core, true);
        let active = patience.active.get_or_insert(core.now);
        if happened {
            *active = core.now;
            core.core_sharing.happened();
            return;
        }
        let quiet = core.now.since(*active);
        match core.core_sharing.stage(self.idle, quiet) {
            Stage::Spin => {}
            Stage::Yield => drop(self.shared.yield_core(core)),
            Stage::Block => {
                let until = core.now + nap.unwrap_or(NAP_MAX);
                drop(self.shared.sleep(core, Some(until)));
            }
        }
    }

    /// Turns the pump until `look` answers; until then `look` returns the request that has to end first.
    pub fn wait_look<R>(&self, mut look: impl FnMut(&mut Engine) -> Result<R, RequestId>) -> R {
        let answer = self.wait_until(None, |core| look(&mut core.engine).map_err(Some));
        answer.expect("it waits until there is one")
    }

    /// Wakes sleeping threads after an event that the node does not know.
    pub fn rouse(&self) {
        self.shared.rouse();
    }
}

impl Shared {
    #[inline]
    pub(crate) fn rouse(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            let _ = rustix::io::write(&self.alarm, &1u64.to_ne_bytes());
        }
    }
}
