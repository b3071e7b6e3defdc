//! Sends: a message leaves in the call that submits it if its rail is idle, and waits in the window
//! otherwise.

use crate::apart::Held;
use crate::lock::{Guard, Release};
use crate::locked::{Core, Outcome};
use crate::node::Node;
use crate::shared::Shared;
use nmad_engine::pump::{self, Tried};
use nmad_engine::{
    Caller, Duration, EarlyEnd, Engine, Envelope, Hints, Protocol, Refused, RequestId, Segments, Submitted,
    To,
};

/// What has ended the wait for a send.
enum Waited {
    Ended(Outcome),
    Left,
    Long,
}

impl Node {
    /// Sends a message and waits until its memory may be reused.
    #[inline]
    pub fn send(&self, to: &To, data: &Segments, hints: Hints) -> Outcome {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        match self.shared.try_at_once(&mut core, to, (data, hints), Caller::Waits) {
            Ok(seq) => Ok(envelope(to, data, seq)),
            Err(tried) => self.send_on(core, to, (data, hints), tried),
        }
    }

    /// Continues a send that did not leave or end at the first attempt.
    #[inline(never)]
    fn send_on(
        &self,
        mut core: Guard<'_, Core>,
        to: &To,
        message: (&Segments, Hints),
        tried: Tried,
    ) -> Outcome {
        match self.shared.go_on(&mut core, to, message, tried) {
            Ok(Submitted::Ended(seq)) => Ok(envelope(to, message.0, seq)),
            Ok(Submitted::Request(request)) => self.finish_send(core, request),
            Err(refused) => self.send_slowly(core, to, message, refused),
        }
    }

    /// Sends by way of the window, or after one poll for credit.
    #[inline(never)]
    fn send_slowly(
        &self,
        mut core: Guard<'_, Core>,
        to: &To,
        (data, hints): (&Segments, Hints),
        mut refused: Option<Refused>,
    ) -> Outcome {
        if core.engine.inspect().needs_credit(to.0, data.len()) && refused.is_none() {
            self.shared.turn(&mut core, true);
            match self.shared.send_at_once(&mut core, to, (data, hints), Caller::Looked) {
                Ok(Submitted::Ended(seq)) => return Ok(envelope(to, data, seq)),
                Ok(Submitted::Request(request)) => return self.finish_send(core, request),
                Err(again) => refused = again,
            }
        }
        let request = core.engine.send_as(*to, data.clone(), hints, refused);
        self.finish_send(core, request)
    }

    /// Waits for a send; if its receiver has it late, the data may be copied, and the helper sends it while
    /// the program goes on ([`Engine::early_end`]).
    fn finish_send(&self, mut core: Guard<'_, Core>, request: RequestId) -> Outcome {
        self.shared.push(&mut core, true);
        if let Some(ended) = core.engine.take(request) {
            return ended;
        }
        let early = core.engine.early_end(request, self.shared.clock.now());
        drop(core);
        match early {
            EarlyEnd::Never => self.wait(request),
            early => self.finish_early(request, early),
        }
    }

    /// Waits for a send that may end early.
    #[cold]
    fn finish_early(&self, request: RequestId, mut early: EarlyEnd) -> Outcome {
        let ended = loop {
            let patience = match early {
                EarlyEnd::Never => break self.wait(request),
                EarlyEnd::After(patience) => Some(patience),
                EarlyEnd::OnceItLeft => None,
            };
            let waited = self.wait_patiently(request, patience);
            let mut core = self.shared.lock();
            let has_left = core.engine.inspect().has_left(request);
            early = match waited {
                Waited::Ended(ended) => break ended,
                Waited::Left => core.engine.early_end(request, self.shared.clock.now()),
                // Without a helper nobody sends what is left of the copy while the program computes.
                Waited::Long if (has_left || self.helper.advances()) && core.engine.end_early(request) => {
                    EarlyEnd::Never
                }
                Waited::Long if has_left => EarlyEnd::Never,
                Waited::Long => EarlyEnd::OnceItLeft,
            };
        };
        let mut core = self.shared.lock();
        core.engine.ended_blocking(self.shared.clock.now());
        self.wake_helper(&mut core);
        ended
    }

    /// Waits for a send until it ends, has left, or has taken this long.
    fn wait_patiently(&self, request: RequestId, patience: Option<Duration>) -> Waited {
        if patience == Some(Duration::ZERO) {
            return Waited::Long;
        }
        let had_left = self.shared.lock().engine.inspect().has_left(request);
        let until = patience.map(|patience| self.shared.clock.now() + patience);
        let looked = self.wait_until(until, |core| match core.take(request) {
            Err(_) if !had_left && core.engine.inspect().has_left(request) => Ok(Waited::Left),
            looked => looked.map(Waited::Ended),
        });
        looked.unwrap_or(Waited::Long)
    }

    /// Submits a message; a rail that injects it takes it at once.
    #[inline]
    pub fn submit_send(&self, to: &To, data: &Segments, hints: Hints) -> RequestId {
        let mut core = self.shared.lock();
        let submitted = match self.shared.try_at_once(&mut core, to, (data, hints), Caller::GoesOn) {
            Ok(seq) => Submitted::Ended(seq),
            Err(tried) => self.begin_on(&mut core, to, (data, hints), tried),
        };
        match submitted {
            Submitted::Ended(seq) => {
                let request = core.engine.ended(envelope(to, data, seq));
                self.shared.news(&mut core);
                request
            }
            Submitted::Request(request) => request,
        }
    }

    /// Submits a message; returns `None` if it has ended successfully already.
    #[inline]
    pub fn begin_send(&self, to: &To, data: &Segments, hints: Hints) -> Option<RequestId> {
        let mut core = self.shared.lock();
        match self.shared.try_at_once(&mut core, to, (data, hints), Caller::GoesOn) {
            Ok(_) => None,
            Err(tried) => match self.begin_on(&mut core, to, (data, hints), tried) {
                Submitted::Ended(_) => None,
                Submitted::Request(request) => Some(request),
            },
        }
    }

    /// Submits a message of a program that computes until it submits the next one. If the protocol needs
    /// the receiver (rendezvous), this call also polls for answers to earlier messages and for an
    /// invitation (Rtr) for this one, since no other thread may poll soon.
    pub fn send_between(&self, to: &To, data: &Segments, hints: Hints) -> RequestId {
        let mut core = self.shared.lock();
        let plan = core.engine.inspect().plan(*to, data.len(), hints, Caller::GoesOn, core.now);
        let asks = plan.is_some_and(|plan| matches!(plan.protocol, Protocol::Rendezvous | Protocol::Rtr));
        let &(peer, context, tag) = to;
        let send = |engine: &mut Engine| engine.send(peer, context, tag, data.clone(), hints);
        if !asks {
            return self.submit_to(&mut core, |_, core| send(&mut core.engine));
        }
        // The poll comes before the send, since an invitation is for the next message of the flow.
        self.shared.turn(&mut core, true);
        let request = send(&mut core.engine);
        self.shared.push_at_once(&mut core);
        self.wake_helper(&mut core);
        request
    }

    /// Continues a send that did not leave or end at the first attempt.
    #[inline(never)]
    fn begin_on<'a>(
        &'a self,
        core: &mut Guard<'a, Core>,
        to: &To,
        message: (&Segments, Hints),
        tried: Tried,
    ) -> Submitted {
        match self.shared.go_on(core, to, message, tried) {
            Ok(submitted @ Submitted::Ended(_)) => submitted,
            Ok(submitted) => {
                self.wake_helper(core);
                submitted
            }
            Err(refused) => self.begin_slowly(core, to, message, refused),
        }
    }

    /// Submits by way of the window, where the message may be aggregated with others.
    fn begin_slowly<'a>(
        &'a self,
        core: &mut Guard<'a, Core>,
        to: &To,
        (data, hints): (&Segments, Hints),
        refused: Option<Refused>,
    ) -> Submitted {
        Submitted::Request(
            self.submit_to(core, |_, core| core.engine.send_as(*to, data.clone(), hints, refused)),
        )
    }
}

impl Shared {
    /// Sends a message in this call, if possible.
    pub(crate) fn send_at_once(
        &self,
        core: &mut Guard<'_, Core>,
        to: &To,
        message: (&Segments, Hints),
        caller: Caller,
    ) -> Result<Submitted, Option<Refused>> {
        match self.try_at_once(core, to, message, caller) {
            Ok(seq) => Ok(Submitted::Ended(seq)),
            Err(tried) => self.go_on(core, to, message, tried),
        }
    }

    /// First step of a send: [`pump::try_at_once`].
    #[inline(always)]
    pub(crate) fn try_at_once(
        &self,
        core: &mut Guard<'_, Core>,
        to: &To,
        message: (&Segments, Hints),
        caller: Caller,
    ) -> Result<u32, Tried> {
        let mut now = core.now;
        let sent = pump::try_at_once(&mut Held(core), to, message, caller, &mut self.clock.kept_in(&mut now));
        core.now = core.now.max(now);
        // The second step records a send that has not ended; nothing else leaves on its rail before.
        if sent.is_ok() {
            self.has_sent(core);
        }
        sent
    }

    /// Second step of a send: [`pump::go_on`].
    #[inline(always)]
    pub(crate) fn go_on(
        &self,
        core: &mut Guard<'_, Core>,
        to: &To,
        message: (&Segments, Hints),
        tried: Tried,
    ) -> Result<Submitted, Option<Refused>> {
        let mut now = core.now;
        let sent = pump::go_on(&mut Held(core), to, message, tried, &mut self.clock.kept_in(&mut now));
        core.now = core.now.max(now);
        self.has_sent(core);
        sent
    }

    /// Feeds the rails, unless a waiting call is about to come anyway.
    #[inline(never)]
    pub(crate) fn push_or_hold(&self, core: &mut Guard<'_, Core>) {
        let Core { engine, bursts, now, .. } = &mut **core;
        if engine.has_orders(*now) {
            if bursts.holds() {
                return;
            }
            *now = self.clock.now();
            if !bursts.submitted(*now) {
                match bursts.leaves_at_once() {
                    true => self.push_at_once(core),
                    false => _ = self.push(core, false),
                }
                // The time after the rails have taken the orders.
                let now = core.now;
                core.bursts.returns(now);
            }
        } else if core.engine.has_errands() {
            core.now = self.clock.now();
            self.push(core, false);
        } else {
            self.collect(core);
        }
    }

    /// Feeds the rails although no thread waits, since the program is likely to compute. It polls for
    /// invitations (Rtr) for large messages, and sends an Rts for those without one.
    #[cold]
    fn push_at_once(&self, core: &mut Guard<'_, Core>) {
        if core.engine.hopes_for_rtr() {
            self.turn(core, true);
            core.engine.ask_at_once();
        }
        self.push(core, true);
    }

    /// Feeds the rails after a send was recorded.
    #[inline(always)]
    fn has_sent(&self, core: &mut Guard<'_, Core>) {
        // Other threads leave messages that they submit while the rail works to the user of the rail.
        if core.is_shared() && core.has_work() {
            self.push(core, false);
        }
    }
}

fn envelope(&(peer, context, tag): &To, data: &Segments, seq: u32) -> Envelope {
    Envelope { peer, context, tag, len: data.len(), seq }
}
