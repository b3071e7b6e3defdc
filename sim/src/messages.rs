//! The messages of a protocol above the engine, on a simulated host.

use crate::cores::Node;
use crate::network::{Shared, lock};
use nmad_engine::packet::RequestId;
use nmad_engine::pump::{self, Access as _};
use nmad_engine::{
    Caller, Claim, Claims, Completion, Context, Engine, Hints, Instant, Outcome, Port, Segments, Source,
    Submitted, TagMatch, To,
};
use std::collections::BTreeMap;

/// A host's engine and rails, for what its application submits.
pub struct Calling<'a> {
    /// Both.
    pub node: Node<'a>,
    /// The time.
    pub clock: &'a mut (dyn FnMut() -> Instant + 'static),
}

/// Requests of the engine that belong to a protocol above it.
pub(crate) struct Requests {
    me: usize,
    network: Shared,
    /// Whether it is a receive.
    running: BTreeMap<RequestId, bool>,
    ended: BTreeMap<RequestId, Outcome>,
}

impl Requests {
    pub(crate) fn new(me: usize, network: Shared) -> Requests {
        Requests { me, network, running: BTreeMap::new(), ended: BTreeMap::new() }
    }

    /// Takes note of a request that has ended; false: it is of somebody else.
    pub(crate) fn ended(&mut self, completion: &Completion) -> bool {
        let Some(receives) = self.running.remove(&completion.request) else { return false };
        if let (true, Ok(message)) = (receives, completion.result) {
            let from = message.peer.0 as usize;
            lock(&self.network).oracle.consumed(from, self.me, message.context.0, message.seq);
        }
        self.ended.insert(completion.request, completion.result);
        true
    }

    pub(crate) fn take(&mut self, request: RequestId, engine: &mut Engine) -> Option<Outcome> {
        if let Some(result) = engine.take(request) {
            self.ended(&Completion { request, result });
        }
        self.ended.remove(&request)
    }

    /// Whether the end of a request was noted and not taken.
    pub(crate) fn has_ended(&self, request: RequestId) -> bool {
        self.ended.contains_key(&request)
    }

    /// Takes the end that was noted of a request.
    pub(crate) fn take_ended(&mut self, request: RequestId) -> Option<Outcome> {
        self.ended.remove(&request)
    }

    fn add(&mut self, request: RequestId, receives: bool) -> RequestId {
        self.running.insert(request, receives);
        request
    }
}

/// The engine alone, for what is done while it is looked after.
pub(crate) struct Inside<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) requests: &'a mut Requests,
}

impl Port for Inside<'_> {
    fn send(&mut self, to: &To, data: &Segments) -> Option<RequestId> {
        let request = self.engine.send(to.0, to.1, to.2, data.clone(), Hints::default());
        Some(self.requests.add(request, false))
    }

    fn receive(&mut self, (from, context, tag): (Source, Context, TagMatch), into: Segments) -> RequestId {
        self.requests.add(self.engine.recv(from, context, tag, into), true)
    }

    fn take(&mut self, request: RequestId) -> Option<Outcome> {
        self.requests.take(request, self.engine)
    }
}

impl Claims for Inside<'_> {
    fn claim(&mut self, (from, context, tag): (Source, Context, TagMatch)) -> Option<Claim> {
        self.engine.claim(from, context, tag)
    }

    fn receive_claimed(&mut self, claim: Claim, into: Segments) -> RequestId {
        self.requests.add(self.engine.recv_claimed(claim, into), true)
    }
}

/// The engine and its rails: a message leaves in the call that sends it, if it can.
pub(crate) struct Outside<'a> {
    pub(crate) call: Calling<'a>,
    pub(crate) requests: &'a mut Requests,
}

impl Port for Outside<'_> {
    fn send(&mut self, to: &To, data: &Segments) -> Option<RequestId> {
        let Calling { node, clock } = &mut self.call;
        let hints = Hints::default();
        let request = match pump::send_at_once(node, to, (data, hints), Caller::GoesOn, &mut **clock) {
            Ok(Submitted::Ended(_)) => return None,
            Ok(Submitted::Request(request)) => request,
            Err(refused) => node.engine().send_as(*to, data.clone(), hints, refused),
        };
        Some(self.requests.add(request, false))
    }

    fn receive(&mut self, from: (Source, Context, TagMatch), into: Segments) -> RequestId {
        Inside { engine: self.call.node.engine(), requests: self.requests }.receive(from, into)
    }

    fn take(&mut self, request: RequestId) -> Option<Outcome> {
        self.requests.take(request, self.call.node.engine())
    }
}
