//! The receive of a thread that waits and keeps all others from the engine meanwhile. It has no entry in the
//! tables that many receives need, until its message comes or others may call.

use crate::collect::request::{Context, Envelope, Source, Tag, TagMatch};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId};
use crate::protocol::{Recv, Request};
use alloc::vec::Vec;

/// A blocking receive; it has no entry in the request table.
#[derive(Debug, Default)]
pub(crate) enum Expected {
    #[default]
    Nothing,
    /// Its source, context, tag and memory.
    Message(PeerId, Context, Tag, Segments),
    /// Its message has arrived.
    Met(Envelope),
    /// It has become a request like any other.
    Posted(RequestId),
}

impl Expected {
    /// Takes the message if it is the expected one and fits into its memory. What is longer has to be posted,
    /// so that it is cut like any other.
    #[inline(always)]
    pub(crate) fn take(&mut self, envelope: &Envelope, data: &[u8]) -> bool {
        let Expected::Message(from, context, tag, into) = self else { return false };
        let is_it = (*from, *context, *tag) == (envelope.peer, envelope.context, envelope.tag);
        if !is_it || envelope.len > into.len() {
            return false;
        }
        if !into.write_whole(data) {
            into.write(0, data);
        }
        *self = Expected::Met(*envelope);
        true
    }
}

/// How far an expected receive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// Nothing has come for it.
    Not,
    /// Its message is there.
    Message(Envelope),
    /// It is a request now.
    Request(RequestId),
}

impl Engine {
    /// Expects a message for a thread that waits and keeps all others from the engine meanwhile. Ask
    /// [`Engine::met`] after each turn of the pump, and [`Engine::post_expected`] before anybody else may
    /// call. Returns the source; none: nothing is expected, use [`Engine::recv`].
    #[inline]
    pub fn expect(
        &mut self,
        from: Source,
        context: Context,
        tag: TagMatch,
        into: &Segments,
    ) -> Option<PeerId> {
        let (Source::Peer(from), TagMatch::Exact(tag)) = (from, tag) else { return None };
        // Receives that were posted before come first.
        if self.receives.matching.has_any() {
            return None;
        }
        let peer = self.peers.get_mut(from.0 as usize)?.as_deref_mut()?;
        // A large one may pay to open its memory early, and that needs a name.
        let is_large = into.len() as usize > peer.way.eager_max && peer.flows.of(context.0).large;
        if is_large || peer.is_gone() {
            return None;
        }
        self.receives.expected = Expected::Message(from, context, tag, into.clone());
        Some(from)
    }

    /// The state of the expected receive; a message or request is reported once.
    #[inline]
    pub fn met(&mut self) -> Met {
        match self.receives.expected {
            Expected::Nothing | Expected::Message(..) => Met::Not,
            Expected::Met(envelope) => {
                self.receives.expected = Expected::Nothing;
                Met::Message(envelope)
            }
            Expected::Posted(request) => {
                self.receives.expected = Expected::Nothing;
                Met::Request(request)
            }
        }
    }

    /// Posts the expected receive if it is this message's: the message is too long for it, or comes as no
    /// small one.
    #[inline(always)]
    pub(crate) fn post_expected_for(&mut self, envelope: &Envelope) {
        if let Expected::Message(from, context, tag, _) = self.receives.expected
            && (from, context, tag) == (envelope.peer, envelope.context, envelope.tag)
        {
            self.post_expected();
        }
    }

    /// Posts the expected receive like any other, if its message has not come.
    pub fn post_expected(&mut self) {
        if !matches!(self.receives.expected, Expected::Message(..)) {
            return;
        }
        if let Expected::Message(from, context, tag, into) = core::mem::take(&mut self.receives.expected) {
            let request = self.recv(Source::Peer(from), context, TagMatch::Exact(tag), into);
            self.receives.expected = Expected::Posted(request);
        }
    }

    /// Whether the expected message has come and nothing waits for a rail.
    #[inline]
    pub(crate) fn is_met(&self) -> bool {
        matches!(self.receives.expected, Expected::Met(_)) && self.ready.is_empty()
    }

    /// The source of a receive whose message has not begun to come; none: it takes a message from anybody,
    /// its message is large and has begun to come, or the request is no such receive.
    #[inline]
    pub fn awaited_from(&self, request: RequestId) -> Option<PeerId> {
        match self.requests.get(request.0) {
            Some(Request::Recv(Recv { from: Source::Peer(from), region: None, .. })) => Some(*from),
            _ => None,
        }
    }

    /// A thread is about to sleep until this request ends; none: until any does. If it receives from a
    /// peer to which no link was asked for, the links are opened now: a peer that has left before it ever
    /// heard from us cannot say so, and only an attempt to reach it tells. True: there are such links.
    #[cold]
    pub fn sleeps_for(&mut self, request: Option<RequestId>) -> bool {
        let all = || self.requests.iter().map(|(name, _)| RequestId(name));
        let awaited = request.into_iter().chain(all().filter(|_| request.is_none()));
        let is_unmet = |from: &PeerId| self.peer(*from).is_some_and(|peer| !peer.is_met && !peer.is_gone());
        let unmet: Vec<_> = awaited.filter_map(|name| self.awaited_from(name)).filter(is_unmet).collect();
        unmet.iter().for_each(|from| self.open_links(*from));
        !unmet.is_empty()
    }

    /// The rail on which a message from this peer is best looked for alone
    /// ([`crate::transfer::driver::Scope`]); none: only a look at all of them tells.
    #[inline]
    pub fn looks_on(&self, from: PeerId) -> Option<RailId> {
        let rail = self.peer(from)?.awaited_on()?;
        self.rails[rail.index()].limits.looks.then_some(rail)
    }
}
