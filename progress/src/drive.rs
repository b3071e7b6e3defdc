//! Work in several steps under one lock, each of which begins when the messages of the one before have
//! come. A collective of small messages consists of such steps.

use crate::lock::Guard;
use crate::locked::{Core, Outcome};
use crate::node::Node;
use crate::shared::Shared;
use nmad_engine::pump::Tried;
use nmad_engine::{Caller, Engine, Hints, RequestId, Segments, Submitted, To};

/// Access to the node for one step.
pub struct Step<'s, 'a> {
    shared: &'s Shared,
    core: &'s mut Guard<'a, Core>,
    has_submitted: bool,
}

impl<'s, 'a> Step<'s, 'a> {
    fn new(shared: &'s Shared, core: &'s mut Guard<'a, Core>) -> Self {
        Step { shared, core, has_submitted: false }
    }

    /// Returns the engine, to submit to it.
    #[inline]
    pub fn engine(&mut self) -> &mut Engine {
        self.has_submitted = true;
        &mut self.core.engine
    }

    /// Takes the result of a request, if it has ended. A result is given once.
    #[inline]
    pub fn take(&mut self, request: RequestId) -> Option<Outcome> {
        self.core.engine.take(request)
    }

    /// Sends a message; it leaves at once if its rail is idle and nothing waits before it. `None`: the send
    /// has ended, and its memory may be reused.
    #[inline]
    pub fn send(&mut self, to: To, data: &Segments, hints: Hints) -> Option<RequestId> {
        match self.shared.try_at_once(self.core, &to, (data, hints), Caller::Steps) {
            Ok(_) => None,
            Err(tried) => self.send_on(&to, (data, hints), tried),
        }
    }

    /// Continues a send that did not leave or end at the first attempt.
    #[inline(never)]
    fn send_on(&mut self, to: &To, message: (&Segments, Hints), tried: Tried) -> Option<RequestId> {
        match self.shared.go_on(self.core, to, message, tried) {
            Ok(Submitted::Ended(_)) => None,
            Ok(Submitted::Request(request)) => Some(request),
            Err(refused) => Some(self.engine().send_as(*to, message.0.clone(), message.1, refused)),
        }
    }
}

impl Node {
    /// Runs one step; its messages leave when a rail is idle.
    #[inline]
    pub fn step<R>(&self, step: impl FnOnce(&mut Step<'_, '_>) -> R) -> R {
        self.submit_to(&mut self.shared.lock(), |shared, core| step(&mut Step::new(shared, core)))
    }

    /// Runs steps until one of them answers, as a thread that waits: messages of a step leave at once, and
    /// the pump is turned between two steps. `None`: `interrupted` was true, which is checked after each
    /// step.
    #[inline]
    pub fn drive<R>(
        &self,
        mut step: impl FnMut(&mut Step<'_, '_>) -> Option<R>,
        interrupted: impl Fn() -> bool,
    ) -> Option<R> {
        let shared = &*self.shared;
        let ended = self.wait_until(None, |core| {
            loop {
                let mut now = Step::new(shared, core);
                let answer = step(&mut now);
                let has_submitted = now.has_submitted;
                // Messages of the last step leave at once too.
                let ended = has_submitted && shared.push(core, true);
                match answer {
                    Some(answer) => return Ok(Some(answer)),
                    None if interrupted() => return Ok(None),
                    // Posted messages may have ended in this feed: the next step need not wait for a turn.
                    None if ended => {}
                    // A step may wait for any of several messages.
                    None => return Err(None),
                }
            }
        });
        ended.flatten()
    }
}
