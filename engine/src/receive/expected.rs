//! The receive of a blocking call during which no other thread uses the engine. It has no entry in the
//! request and matching tables until its message arrives or other threads may use the engine.

use crate::collect::request::{Context, Envelope, Source, Tag, TagMatch};
use crate::engine::{Engine, Inspect};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId};
use crate::protocol::{Recv, Request};
use alloc::vec::Vec;

/// A blocking receive; it has no entry in the request table.
#[derive(Debug, Default)]
pub(crate) enum Expected {
    #[default]
    Nothing,
    /// Source, context, tag and memory of the receive.
    Message(PeerId, Context, Tag, Segments),
    /// The message has arrived.
    Received(Envelope),
    /// The receive was posted as a request.
    Posted(RequestId),
}

impl Expected {
    /// Receives the message if it is the expected one and fits into the memory. A longer one needs a posted
    /// receive, which truncates it.
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
        *self = Expected::Received(*envelope);
        true
    }
}

/// State of an expected receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// Its message has not arrived.
    Not,
    /// Its message has arrived.
    Message(Envelope),
    /// It was posted as this request.
    Request(RequestId),
}

impl Engine {
    /// Begins a blocking receive during which no other thread uses the engine. Call [`Engine::met`] after
    /// each pass of the pump, and [`Engine::post_expected`] before another thread may call. Returns the
    /// source; `None`: use [`Engine::recv`].
    #[inline]
    pub fn expect(
        &mut self,
        from: Source,
        context: Context,
        tag: TagMatch,
        into: &Segments,
    ) -> Option<PeerId> {
        let (Source::Peer(from), TagMatch::Exact(tag)) = (from, tag) else { return None };
        // Receives posted before match first.
        if self.receives.matching.has_any() || !self.receives.closed.is_empty() {
            return None;
        }
        let peer = self.peers.get_mut(from)?;
        // For a large message it may pay to open a receive region early, which needs a request.
        let is_large = into.len() as usize > peer.way.eager_max && peer.flows.of(context.0).large;
        if is_large || peer.is_gone() {
            return None;
        }
        self.receives.expected = Expected::Message(from, context, tag, into.clone());
        Some(from)
    }

    /// Returns the state of the expected receive; a message or request is reported once.
    #[inline]
    pub fn met(&mut self) -> Met {
        match self.receives.expected {
            Expected::Nothing | Expected::Message(..) => Met::Not,
            Expected::Received(envelope) => {
                self.receives.expected = Expected::Nothing;
                Met::Message(envelope)
            }
            Expected::Posted(request) => {
                self.receives.expected = Expected::Nothing;
                Met::Request(request)
            }
        }
    }

    /// Posts the expected receive if it is the receive for this message, which is too long for it or is not
    /// a small message.
    #[inline(always)]
    pub(crate) fn post_expected_for(&mut self, envelope: &Envelope) {
        if let Expected::Message(from, context, tag, _) = self.receives.expected
            && (from, context, tag) == (envelope.peer, envelope.context, envelope.tag)
        {
            self.post_expected();
        }
    }

    /// Posts the expected receive as a request if its message has not arrived.
    pub fn post_expected(&mut self) {
        if !matches!(self.receives.expected, Expected::Message(..)) {
            return;
        }
        if let Expected::Message(from, context, tag, into) = core::mem::take(&mut self.receives.expected) {
            let request = self.recv(Source::Peer(from), context, TagMatch::Exact(tag), into);
            self.receives.expected = Expected::Posted(request);
        }
    }

    /// Whether the expected message has arrived and no peer has data for a rail.
    #[inline]
    pub(crate) fn has_expected(&self) -> bool {
        matches!(self.receives.expected, Expected::Received(_)) && self.ready.is_empty()
    }

    /// Called before a thread sleeps until this request ends; `None`: until any ends. If it receives from a
    /// peer whose links were never opened, they are opened now: a peer that left before any contact cannot
    /// report it, and only an attempt to connect finds out. True: there are such links.
    #[cold]
    pub fn sleeps_for(&mut self, request: Option<RequestId>) -> bool {
        let all = || self.requests.iter().map(|(name, _)| RequestId(name));
        let awaited = request.into_iter().chain(all().filter(|_| request.is_none()));
        let is_unmet = |from: &PeerId| self.peer(*from).is_some_and(|peer| !peer.is_met && !peer.is_gone());
        let unmet: Vec<_> =
            awaited.filter_map(|name| self.inspect().awaited_from(name)).filter(is_unmet).collect();
        unmet.iter().for_each(|from| self.open_links(*from));
        !unmet.is_empty()
    }
}

impl Inspect<'_> {
    /// Returns the source of a receive whose message has not begun to arrive; `None`: it accepts any
    /// source, its message is large and has begun to arrive, or the request is not such a receive.
    #[inline]
    pub fn awaited_from(self, request: RequestId) -> Option<PeerId> {
        match self.0.requests.get(request.0) {
            Some(Request::Recv(Recv { from: Source::Peer(from), region: None, .. })) => Some(*from),
            _ => None,
        }
    }

    /// Returns the rail on which to poll for a message of this peer alone
    /// ([`crate::transfer::driver::Scope`]); `None`: poll all rails.
    #[inline]
    pub fn looks_on(self, from: PeerId) -> Option<RailId> {
        let rail = self.0.peer(from)?.awaited_on()?;
        self.0.rails[rail.index()].limits.looks.then_some(rail)
    }
}
