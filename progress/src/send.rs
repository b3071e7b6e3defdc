//! Sends: each leaves in the call that submits it, if it finds its rail idle, and waits in the window
//! otherwise.

use crate::apart::Held;
use crate::lock::{Guard, Release};
use crate::node::{Core, Node, Outcome, Shared};
use nmad_engine::{Caller, Envelope, Hints, Refused, RequestId, Segments, Submitted, To, pump};

impl Node {
    /// Sends a message and waits until its memory may be reused.
    #[inline]
    pub fn send(&self, to: To, data: &Segments, hints: Hints) -> Outcome {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        match self.shared.send_at_once(&mut core, to, (data, hints), Caller::Waits) {
            Ok(Submitted::Ended(seq)) => Ok(envelope(to, data, seq)),
            Ok(Submitted::Request(request)) => self.finish_sent(core, to, request),
            Err(refused) => self.send_slowly(core, to, (data, hints), refused),
        }
    }

    /// The same by way of the window, or after a look for credit.
    #[inline(never)]
    fn send_slowly(
        &self,
        mut core: Guard<'_, Core>,
        to: To,
        (data, hints): (&Segments, Hints),
        mut refused: Option<Refused>,
    ) -> Outcome {
        if core.engine.needs_credit(to.0, data.len()) && refused.is_none() {
            self.shared.turn(&mut core, true);
            match self.shared.send_at_once(&mut core, to, (data, hints), Caller::Looked) {
                Ok(Submitted::Ended(seq)) => return Ok(envelope(to, data, seq)),
                Ok(Submitted::Request(request)) => return self.finish_sent(core, to, request),
                Err(again) => refused = again,
            }
        }
        let request = core.engine.send_as(to, data.clone(), hints, refused);
        self.finish(core, request)
    }

    /// Waits for the end of a message. The receiver copies it in some microseconds, if that was offered.
    #[inline(never)]
    fn finish_sent(&self, mut core: Guard<'_, Core>, to: To, request: RequestId) -> Outcome {
        while core.engine.is_offering(to.0) {
            if !self.shared.look_for(&mut core, to.0) {
                self.shared.turn(&mut core, true);
            }
        }
        self.finish(core, request)
    }

    /// Submits a message; a rail that injects it has it at once.
    #[inline]
    pub fn submit_send(&self, to: To, data: &Segments, hints: Hints) -> RequestId {
        let mut core = self.shared.lock();
        match self.begin(&mut core, to, data, hints) {
            Submitted::Ended(seq) => {
                let request = core.engine.ended(envelope(to, data, seq));
                self.shared.news(&mut core);
                request
            }
            Submitted::Request(request) => request,
        }
    }

    /// As [`Node::submit_send`], but none where the message has ended well already.
    #[inline]
    pub fn begin_send(&self, to: To, data: &Segments, hints: Hints) -> Option<RequestId> {
        match self.begin(&mut self.shared.lock(), to, data, hints) {
            Submitted::Ended(_) => None,
            Submitted::Request(request) => Some(request),
        }
    }

    #[inline]
    fn begin<'a>(&'a self, core: &mut Guard<'a, Core>, to: To, data: &Segments, hints: Hints) -> Submitted {
        match self.shared.send_at_once(core, to, (data, hints), Caller::GoesOn) {
            Ok(submitted @ Submitted::Ended(_)) => submitted,
            Ok(submitted) => {
                self.mind(core);
                submitted
            }
            Err(refused) => self.begin_slowly(core, to, (data, hints), refused),
        }
    }

    /// The same by way of the window, where it may still find company.
    #[inline(never)]
    fn begin_slowly<'a>(
        &'a self,
        core: &mut Guard<'a, Core>,
        to: To,
        (data, hints): (&Segments, Hints),
        refused: Option<Refused>,
    ) -> Submitted {
        Submitted::Request(
            self.submit_to(core, |_, core| core.engine.send_as(to, data.clone(), hints, refused)),
        )
    }
}

impl Shared {
    /// Has a message leave in this call, if it can.
    #[inline(always)]
    pub(crate) fn send_at_once(
        &self,
        core: &mut Guard<'_, Core>,
        to: To,
        message: (&Segments, Hints),
        caller: Caller,
    ) -> Result<Submitted, Option<Refused>> {
        let mut now = core.now;
        let sent =
            pump::send_at_once(&mut Held(core), to, message, caller, &mut self.clock.kept_in(&mut now));
        core.now = core.now.max(now);
        // What other threads have submitted while the rail worked is left to its user.
        if core.is_shared() && core.has_work() {
            self.push(core, false);
        }
        sent
    }
}

fn envelope((peer, context, tag): To, data: &Segments, seq: u32) -> Envelope {
    Envelope { peer, context, tag, len: data.len(), seq }
}
