//! Posting, probing and cancelling of receives, and delivery of unexpected messages.

use crate::collect::matching::{Arrived, Unexpected};
use crate::collect::request::{Context, Envelope, Error, Source, TagMatch};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::RequestId;
use crate::protocol::{Recv, Request};
use crate::receive::Receives;

impl Engine {
    /// Posts a receive. It matches the first message that fits, now or later; its memory is in use until
    /// the request ends.
    ///
    /// The request ends with the envelope of the message, or with [`Error::Truncated`],
    /// [`Error::Cancelled`], or [`Error::PeerLost`] (only if it names the peer), or with the error of a
    /// closed context ([`Engine::close_context`]).
    // Inlined everywhere, so that the receive is written once, directly to its place.
    #[inline(always)]
    pub fn recv(&mut self, from: Source, context: Context, tag: TagMatch, into: Segments) -> RequestId {
        let Engine { peers, receives: Receives { matching, closed, .. }, requests, .. } = self;
        let plain = match from {
            Source::Any => true,
            Source::Peer(id) => {
                peers.get(id).is_some_and(|peer| !peer.is_gone() && into.len() as usize <= peer.way.eager_max)
            }
        };
        if !plain || matching.unexpected_count() > 0 || !closed.is_empty() {
            return self.post(Recv::new(into, (from, context, tag)));
        }
        // No message matches, and the peer needs no notification.
        let vacant = requests.vacant();
        let request = RequestId(vacant.name());
        let posted = Some(matching.post(request, from, context, tag));
        vacant.fill(Request::Recv(Recv { posted, ..Recv::new(into, (from, context, tag)) }));
        request
    }

    #[inline(never)]
    pub(crate) fn post(&mut self, recv: Recv) -> RequestId {
        let (from, context, tag) = (recv.from, recv.context, recv.tag);
        let request = RequestId(self.requests.insert(Request::Recv(recv)));
        self.post_as(request, from, context, tag);
        request
    }

    pub(crate) fn post_as(&mut self, request: RequestId, from: Source, context: Context, tag: TagMatch) {
        if let Some(error) = self.receives.closed.error(context) {
            return self.fail_request(request, error);
        }
        if let Some(place) = self.receives.matching.peek(from, context, tag) {
            if let Some(unexpected) = self.receives.matching.take(place) {
                self.deliver_unexpected(request, unexpected);
            }
            return;
        }
        if let Source::Peer(peer) = from
            && self.peer(peer).is_none_or(|peer| peer.is_gone())
            && !self.meet(peer)
        {
            return self.fail_request(request, Error::PeerLost(peer));
        }
        let place = self.receives.matching.post(request, from, context, tag);
        if let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) {
            recv.posted = Some(place);
        }
        self.consider_rtr(request);
    }

    pub(crate) fn deliver_unexpected(&mut self, request: RequestId, unexpected: Unexpected) {
        let Unexpected { envelope, body, request: theirs, .. } = unexpected;
        // The message waited for its receive.
        self.is_waiting = false;
        self.deliver_body(request, envelope, body, theirs);
        self.consider_credit(envelope.peer);
    }

    /// Delivers a message that arrived before, or its body now.
    pub(crate) fn deliver_body(
        &mut self,
        request: RequestId,
        envelope: Envelope,
        body: Arrived,
        theirs: u64,
    ) {
        match body {
            Arrived::Inline(data, len) => self.deliver(request, envelope, &data[..usize::from(len)], theirs),
            Arrived::Stored(data) => self.deliver(request, envelope, &data, theirs),
            Arrived::Kept(buffer) => {
                let data = buffer.segments();
                self.deliver(request, envelope, data.contiguous().unwrap_or_default(), theirs);
                self.spare.give(buffer);
            }
            Arrived::Rts { fin, body } => self.grant_region(request, envelope, theirs, fin, body),
        }
    }

    /// Returns the envelope of the message that such a receive would match now, without receiving it.
    pub fn probe(&mut self, from: Source, context: Context, tag: TagMatch) -> Option<Envelope> {
        let place = self.receives.matching.peek(from, context, tag)?;
        self.receives.matching.unexpected(place).map(|unexpected| unexpected.envelope)
    }

    /// Tries to cancel a receive. True: it will end with [`Error::Cancelled`], or with the message if its
    /// peer already has its Rtr and uses it. False: it is already matched, or is a send. A send goes on, but
    /// ends without a receive that matches it: the engine keeps a copy of its data.
    pub fn cancel(&mut self, request: RequestId) -> bool {
        if !matches!(self.requests.get(request.0), Some(Request::Recv(_))) {
            self.keep(request);
            return false;
        }
        self.withdraw_recv(request, Error::Cancelled)
    }

    pub(crate) fn fail_request(&mut self, request: RequestId, error: Error) {
        let message = match self.requests.get(request.0) {
            None | Some(Request::Ended(_)) => return,
            Some(Request::Recv(recv)) => recv.message,
            Some(_) => None,
        };
        self.complete(request, Err(error));
        if let Some(message) = message {
            self.first_piece_failed(message, error);
        }
    }
}
