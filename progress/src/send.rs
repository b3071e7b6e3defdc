//! Sends: each takes the shortest way that the message and the rails allow.

use crate::lock::Guard;
use crate::node::{Core, Node, Outcome, Shared};
use nmad_engine::{Context, Envelope, Hints, PeerId, Pushed, RequestId, Segments, Tag, pump};

/// Where a message goes.
type To = (PeerId, Context, Tag);

impl Node {
    /// Sends a message and waits until its memory may be reused.
    #[inline]
    pub fn send(&self, to: To, data: &Segments, hints: Hints) -> Outcome {
        let mut core = self.shared.lock();
        self.shared.waits(&mut core);
        let Core { engine, rails, .. } = &mut *core;
        match pump::hand_over(engine, rails, to, data, hints) {
            Some(seq) => Ok(envelope(to, data, seq)),
            None => self.send_slowly(core, to, data, hints),
        }
    }

    /// The same with a system call, or by way of a packet.
    #[inline(never)]
    fn send_slowly(&self, mut core: Guard<'_, Core>, to: To, data: &Segments, hints: Hints) -> Outcome {
        let Core { engine, rails, now, .. } = &mut *core;
        let sent = pump::send_now(engine, rails, to, data, hints, &mut self.shared.clock.kept_in(now));
        match sent {
            Some(seq) => Ok(envelope(to, data, seq)),
            None => self.send_long(core, to, data, hints),
        }
    }

    /// The same for a large message, whose body follows its request to send where that is possible.
    #[inline(never)]
    fn send_long(&self, mut core: Guard<'_, Core>, to: To, data: &Segments, hints: Hints) -> Outcome {
        let (peer, context, tag) = to;
        if core.engine.needs_credit(peer, data.len()) {
            self.shared.turn(&mut core, true);
        }
        let request = match self.shared.push_now(&mut core, to, data, hints) {
            Some(Pushed::Whole(seq)) => return Ok(envelope(to, data, seq)),
            Some(Pushed::InPart(request)) => request,
            None => core.engine.send(peer, context, tag, data.clone(), hints),
        };
        self.finish(core, request)
    }

    /// Submits a message; a rail that takes it without a system call has it at once.
    #[inline]
    pub fn submit_send(&self, to: To, data: &Segments, hints: Hints) -> RequestId {
        let mut core = self.shared.lock();
        match self.begin(&mut core, to, data, hints) {
            Pushed::Whole(seq) => {
                let request = core.engine.ended(envelope(to, data, seq));
                self.shared.news(&mut core);
                request
            }
            Pushed::InPart(request) => request,
        }
    }

    /// As [`Node::submit_send`], but none where the message has ended well already.
    #[inline]
    pub fn begin_send(&self, to: To, data: &Segments, hints: Hints) -> Option<RequestId> {
        match self.begin(&mut self.shared.lock(), to, data, hints) {
            Pushed::Whole(_) => None,
            Pushed::InPart(request) => Some(request),
        }
    }

    #[inline]
    fn begin(&self, core: &mut Core, to: To, data: &Segments, hints: Hints) -> Pushed {
        let Core { engine, rails, .. } = core;
        match pump::send_directly(engine, rails, to, data, hints, None) {
            Some(seq) => Pushed::Whole(seq),
            None => self.begin_long(core, to, data, hints),
        }
    }

    /// The same for a message that no rail takes in one piece. What may be pushed leaves at once over a rail
    /// for which that is a copy; on the others it may still find company.
    #[inline(never)]
    fn begin_long(&self, core: &mut Core, to: To, data: &Segments, hints: Hints) -> Pushed {
        let (peer, context, tag) = to;
        if core.engine.takes_at_once(peer)
            && let Some(pushed) = self.shared.push_now(core, to, data, hints)
        {
            self.mind(core);
            return pushed;
        }
        let submission =
            |_: &Shared, core: &mut Core| core.engine.send(peer, context, tag, data.clone(), hints);
        Pushed::InPart(self.submit_to(core, submission))
    }
}

impl Shared {
    /// Has a large message leave at once, if all of it may be pushed.
    fn push_now(&self, core: &mut Core, to: To, data: &Segments, hints: Hints) -> Option<Pushed> {
        let Core { engine, rails, now, .. } = core;
        pump::push_now(engine, rails, to, data, hints, &mut self.clock.kept_in(now))
    }
}

fn envelope((peer, context, tag): To, data: &Segments, seq: u32) -> Envelope {
    Envelope { peer, context, tag, len: data.len(), seq }
}
