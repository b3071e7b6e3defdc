//! Waiting for events that the node does not know: several things at once, or work of the caller that
//! continues when messages have arrived.

use crate::core_sharing::Stage;
use crate::locked::Outcome;
use crate::node::Node;
use crate::shared::{Shared, Tidings};
use nmad_engine::{Engine, Instant, RequestId};
use std::sync::atomic::Ordering;

/// State of one wait; make one for each wait.
#[derive(Debug, Default)]
pub struct Patience {
    /// Time of the last event.
    active: Option<Instant>,
    /// What had happened before the caller looked for the last time.
    seen: Option<Tidings>,
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

    /// Turns the pump once, as a thread that waits between two looks of its own. If nothing has happened for
    /// long, yields or sleeps as [`crate::Sharing`] says, until a rail has an event, a request ends, or
    /// [`Node::rouse`] is called. No such event is missed that comes after the look. `may_sleep` is called
    /// before each sleep; if it returns false, the caller looks once more.
    pub fn pause(&self, patience: &mut Patience, may_sleep: impl FnOnce() -> bool) {
        let mut core = self.shared.lock();
        match patience.active {
            None => self.shared.waits(&mut core),
            Some(_) => self.shared.end_burst(&mut core),
        };
        let happened = self.shared.turn(&mut core, true);
        let active = patience.active.get_or_insert(core.now);
        if happened {
            *active = core.now;
            core.happened();
            core = self.give_way(core);
        } else {
            core = match self.stage(&mut core, *active) {
                Stage::Spin => core,
                Stage::Yield => self.shared.yield_core(core),
                Stage::Sleep if patience.seen.is_some() && may_sleep() => {
                    self.shared.sleep(core, None, patience.seen)
                }
                Stage::Sleep => core,
            };
        }
        patience.seen = Some(self.shared.tidings(&core));
    }

    /// Records that the caller has found what it waited for.
    #[inline]
    pub fn found(&self, patience: &Patience) {
        if patience.active.is_some() {
            self.shared.lock().happened();
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
        self.roused.fetch_add(1, Ordering::SeqCst);
        self.wake_sleepers();
    }

    /// Wakes sleeping threads.
    #[inline]
    pub(crate) fn wake_sleepers(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _ = rustix::io::write(&self.alarm, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sharing;
    use nmad_engine::{Config, Context, Segments, Source, TagMatch};

    /// A sleep begins only if nothing has changed since the caller looked.
    #[test]
    fn calls_of_rouse_and_ended_requests_are_tidings() {
        let engine = Engine::new(Config::default()).expect("the default strategy exists");
        let node = Node::new(engine, Vec::new(), Sharing::Always(2), |_| {}).expect("a thread");
        let tidings = || node.shared.tidings(&node.shared.lock());
        let first = tidings();
        let recv =
            |engine: &mut Engine| engine.recv(Source::Any, Context(0), TagMatch::Any, Segments::empty());
        let request = node.submit(recv);
        assert_eq!(first, tidings(), "a request that goes on is none");
        node.rouse();
        let roused = tidings();
        assert_ne!(first, roused);
        assert!(node.submit(|engine| engine.cancel(request)));
        assert_ne!(roused, tidings());
    }

    #[test]
    fn a_thread_sleeps_only_if_its_caller_permits_it_after_a_look() {
        let engine = Engine::new(Config::default()).expect("the default strategy exists");
        let node = Node::new(engine, Vec::new(), Sharing::Never, |_| {}).expect("a thread");
        let (mut patience, mut asked) = (Patience::default(), 0);
        while asked < 3 {
            node.pause(&mut patience, || {
                asked += 1;
                // What changes now is not missed: the sleep has no other end but its bound.
                node.rouse();
                asked > 1
            });
        }
        assert!(patience.seen.is_some());
    }
}
