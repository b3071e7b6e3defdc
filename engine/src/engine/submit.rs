//! Application to window: send, receive, probe, cancel, and incremental messages.

use crate::collect::matching::{Arrived, Unexpected};
use crate::collect::message::{self, Packing, Unpacked, Unpacking};
use crate::collect::request::{
    Context, EagerSend, Envelope, Error, Hints, Outgoing, Recv, Request, Source, Tag, TagMatch,
};
use crate::collect::window::Entry;
use crate::engine::Engine;
use crate::engine::peer::Peer;
use crate::memory::Segments;
use crate::packet::{PeerId, RequestId};
use crate::profile::sample::Method;
use crate::protocol::leaving::{Refused, To};
use alloc::boxed::Box;
use nmad_wire::{Eager, flags};

impl Engine {
    /// Submits a message. It leaves when a rail is idle; its memory is in use until the request ends.
    ///
    /// The request ends with the envelope when the memory may be reused (with [`Hints::synchronous`]: when
    /// the receiver has matched it), or with [`Error::PeerLost`].
    #[inline]
    pub fn send(
        &mut self,
        to: PeerId,
        context: Context,
        tag: Tag,
        data: Segments,
        hints: Hints,
    ) -> RequestId {
        self.send_as((to, context, tag), data, hints, None)
    }

    /// The same of a message that rails have refused to take at once ([`Engine::begin`]): it has its number
    /// already.
    #[inline]
    pub fn send_as(
        &mut self,
        (to, context, tag): To,
        data: Segments,
        hints: Hints,
        refused: Option<Refused>,
    ) -> RequestId {
        let len = data.len();
        let mut envelope = Envelope { peer: to, context, tag, len, seq: 0 };
        let Engine { peers, config, rails, watched, .. } = self;
        let peer = peers.get_mut(to.0 as usize).and_then(|peer| peer.as_deref_mut());
        let Some(peer) = peer.filter(|peer| !peer.is_gone()) else {
            return self.refuse(envelope, refused);
        };
        if let Some(chosen) = hints.strategy {
            peer.know(chosen, &config.registry);
        }
        let hints = if peer.is_curious { peer.wonder(rails, watched, len, hints) } else { hints };
        if hints.depends && !peer.held.is_empty() {
            return self.send_behind_held((to, context, tag), data, hints, refused);
        }
        let hints = peer.number(&mut envelope, hints, refused);
        let rtr =
            if peer.rtrs.is_empty() || hints.unordered { None } else { peer.take_rtr(context.0, tag.0) };
        let reads = rtr.is_none() && peer.would_read(len, hints) && data.address().is_some();
        let goes_eager = !reads && peer.goes_eager(len, hints);
        let in_parts = len as usize > peer.longest_eager();
        let (is_long, invited) = (len as usize > peer.eager_max, rtr.is_some());
        // A long message goes straight to its place, if the receiver has said where that is.
        let unasked = goes_eager && !(invited && peer.takes_invitation(len));
        if unasked {
            peer.credit.spend_known(len);
            // It would have been read, had the receiver not been late.
            if peer.is_readable(len) {
                peer.lateness.unasked();
            }
        }
        if is_long {
            self.note_way(to, (len, hints), unasked);
        }
        if !unasked {
            return self.send_large(envelope, data, hints, rtr, refused);
        }
        if in_parts {
            return self.send_in_parts(envelope, data, hints, refused);
        }
        let request = self.enter(refused, Request::Eager(EagerSend::new(envelope, hints.synchronous)));
        let head = Eager {
            flags: flags::of(hints.synchronous, hints.unordered, false),
            context: context.0,
            tag: tag.0,
            seq: envelope.seq,
            len: len as u32,
            request: request.0,
        };
        let peer = self.peers[to.0 as usize].as_deref_mut().expect("looked up above");
        let rail = peer.wished(hints.rail);
        peer.window.submit(rail, Entry::eager(head, data, request, &hints));
        // What only joins the others changes nothing for busy rails.
        let is_more = peer.window.is_hasty() || self.config.feed.feeds_busy(peer.window.backlog());
        if is_more || !peer.is_ready {
            self.make_ready(to);
        }
        request
    }

    /// What a message depends on asks for its turn now instead of waiting for an Rtr.
    #[cold]
    fn send_behind_held(
        &mut self,
        to: To,
        data: Segments,
        hints: Hints,
        refused: Option<Refused>,
    ) -> RequestId {
        self.ask_for_held(to.0, |_| false);
        self.send_as(to, data, hints, refused)
    }

    /// A send's request: a new one, unless the message has one.
    #[inline]
    pub(crate) fn enter(&mut self, refused: Option<Refused>, send: Request) -> RequestId {
        let known = refused.and_then(|refused| refused.request);
        let Some(place) = known.and_then(|known| self.requests.get_mut(known.0)) else {
            return RequestId(self.requests.insert(send));
        };
        *place = send;
        known.unwrap_or(RequestId::NONE)
    }

    fn send_large(
        &mut self,
        envelope: Envelope,
        data: Segments,
        hints: Hints,
        rtr: Option<nmad_wire::Rtr>,
        refused: Option<Refused>,
    ) -> RequestId {
        let is_timed = self.times_large(envelope.peer, hints);
        // Whoever measures what a handshake costs gets one. So does what is timed if the rail seems slow: the
        // answer tells whether the receiver is there, and only then it is the rail that is timed.
        let is_doubted = is_timed && self.seems_slow(envelope.peer);
        let reads = |peer: &Peer| peer.would_read(envelope.len, hints);
        let reads = rtr.is_none() && !is_timed && self.peer(envelope.peer).is_some_and(reads);
        let address = data.address().filter(|_| reads).unwrap_or(0);
        let asks = address > 0 || rtr.is_some() || is_doubted || hints.probe == Some(Method::Rendezvous);
        let pushed = if asks { 0 } else { self.spend_push(&envelope) };
        let keeps = self.peer(envelope.peer).is_some_and(|peer| peer.keeps);
        // Bytes that go ahead say nothing about the receiver.
        let wants_fin = keeps || address > 0 || (pushed > 0 && hints.synchronous);
        let outgoing =
            Outgoing { wants_fin, is_timed, pushed, address, ..Outgoing::new(envelope, data, hints) };
        let request = self.enter(refused, Request::Large(Box::new(outgoing)));
        if rtr.is_some() || pushed > 0 || address > 0 || !self.expects_rtr(request) {
            self.request_to_send(request, rtr);
        }
        request
    }

    /// A request to a peer that is gone or was never known ends at once.
    #[cold]
    fn refuse(&mut self, envelope: Envelope, refused: Option<Refused>) -> RequestId {
        let request = self.enter(refused, Request::Eager(EagerSend::new(envelope, false)));
        self.complete(request, Err(Error::PeerLost(envelope.peer)));
        request
    }

    /// Posts a receive. It takes the first message that matches, now or later; its memory is in use until
    /// the request ends.
    ///
    /// The request ends with the envelope of the message, or with [`Error::Truncated`],
    /// [`Error::Cancelled`], or [`Error::PeerLost`] (only if it names the peer).
    // Inlined wherever it is called: the receive is written once, into its place.
    #[inline(always)]
    pub fn recv(&mut self, from: Source, context: Context, tag: TagMatch, into: Segments) -> RequestId {
        let Engine { peers, matching, requests, .. } = self;
        let plain = match from {
            Source::Any => true,
            Source::Peer(id) => peers
                .get(id.0 as usize)
                .and_then(|peer| peer.as_deref())
                .is_some_and(|peer| !peer.is_gone() && into.len() as usize <= peer.eager_max),
        };
        if !plain || matching.unexpected_count() > 0 {
            return self.post(Recv::new(into, (from, context, tag)));
        }
        // Nothing is there for it, and nobody needs to be told.
        let vacant = requests.vacant();
        let request = RequestId(vacant.name());
        let posted = Some(matching.post(request, from, context, tag));
        vacant.fill(Request::Recv(Recv { posted, ..Recv::new(into, (from, context, tag)) }));
        request
    }

    #[inline(never)]
    fn post(&mut self, recv: Recv) -> RequestId {
        let (from, context, tag) = (recv.from, recv.context, recv.tag);
        let request = RequestId(self.requests.insert(Request::Recv(recv)));
        self.post_as(request, from, context, tag);
        request
    }

    fn post_as(&mut self, request: RequestId, from: Source, context: Context, tag: TagMatch) {
        if let Some(place) = self.matching.peek(from, context, tag) {
            if let Some(unexpected) = self.matching.take(place) {
                self.deliver_unexpected(request, unexpected);
            }
            return;
        }
        if let Source::Peer(peer) = from
            && self.peer(peer).is_none_or(|peer| peer.is_gone())
        {
            return self.fail_request(request, Error::PeerLost(peer));
        }
        let place = self.matching.post(request, from, context, tag);
        if let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) {
            recv.posted = Some(place);
        }
        self.consider_rtr(request);
    }

    pub(crate) fn deliver_unexpected(&mut self, request: RequestId, unexpected: Unexpected) {
        let Unexpected { envelope, body, request: theirs, .. } = unexpected;
        self.deliver_body(request, envelope, body, theirs);
        self.consider_credit(envelope.peer);
    }

    /// A receive gets a message that was here before, or its body now.
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

    /// What a receive with these names would get now, without taking it.
    pub fn probe(&mut self, from: Source, context: Context, tag: TagMatch) -> Option<Envelope> {
        let place = self.matching.peek(from, context, tag)?;
        self.matching.unexpected(place).map(|unexpected| unexpected.envelope)
    }

    /// Tries to take back a receive. True: it will end with [`Error::Cancelled`], or, if its peer was
    /// already told to send straight into its memory and does so, with the message. False: it is matched
    /// already or is a send, and ends as if nobody had asked.
    pub fn cancel(&mut self, request: RequestId) -> bool {
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return false };
        let (place, region, from) = (recv.posted, recv.region, recv.from);
        recv.withdrawn = true;
        match (place, region, from) {
            (Some(_), Some(region), Source::Peer(peer)) => self.withdraw(peer, region),
            (Some(place), _, _) => {
                self.matching.retract(place);
                self.fail_request(request, Error::Cancelled);
            }
            (None, _, _) => return false,
        }
        true
    }

    /// Begins a message that is built piece by piece.
    pub fn begin_packing(&mut self, to: PeerId, context: Context, tag: Tag) -> Packing {
        Packing { to, context, tag, first: None, next_piece: 1 }
    }

    /// Adds a piece; it may leave at once. The message has no end of its own: it is complete when the
    /// requests of all pieces are.
    pub fn pack(&mut self, packing: &mut Packing, data: Segments, hints: Hints) -> RequestId {
        let Packing { to, context, tag, .. } = *packing;
        let Some(first) = packing.first else {
            packing.first = self.peer_mut(to).map(|peer| peer.flows.of(context.0).send_next);
            return self.send(to, context, tag, data, Hints { unordered: false, ..hints });
        };
        let piece = message::piece_tag(first, packing.next_piece);
        packing.next_piece += 1;
        self.send(to, message::piece_context(context), piece, data, message::piece_hints(hints))
    }

    /// Begins to take a message apart.
    pub fn begin_unpacking(&mut self, from: Source, context: Context, tag: TagMatch) -> Unpacking {
        let message = self.messages.insert(Unpacked::default());
        Unpacking { from, context, tag, message, next_piece: 0 }
    }

    /// Receives the next piece of the message.
    pub fn unpack(&mut self, unpacking: &mut Unpacking, into: Segments) -> RequestId {
        let Unpacking { from, context, tag, message, next_piece } = *unpacking;
        unpacking.next_piece += 1;
        let mut recv = Recv::new(into, (from, context, tag));
        if next_piece == 0 {
            recv.message = Some(message);
            return self.post(recv);
        }
        let request = RequestId(self.requests.insert(Request::Recv(recv)));
        match self.messages.get_mut(message) {
            Some(&mut Unpacked { failed: Some(error), .. }) => self.fail_request(request, error),
            Some(&mut Unpacked { origin: Some((peer, first)), .. }) => {
                self.post_piece(request, peer, context, first, next_piece);
            }
            Some(Unpacked { waiting, .. }) => waiting.push((request, next_piece)),
            None => self.fail_request(request, Error::Cancelled),
        }
        request
    }

    /// Ends the taking apart: no further piece will be asked for.
    pub fn end_unpacking(&mut self, unpacking: Unpacking) {
        if let Some(unpacked) = self.messages.get_mut(unpacking.message) {
            unpacked.ended = true;
            if unpacking.next_piece == 0 || unpacked.origin.is_some() || unpacked.failed.is_some() {
                self.messages.remove(unpacking.message);
            }
        }
    }

    fn post_piece(&mut self, request: RequestId, peer: PeerId, context: Context, first: u32, piece: u32) {
        let (context, tag) = (message::piece_context(context), message::piece_tag(first, piece));
        if let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) {
            (recv.from, recv.context, recv.tag) = (Source::Peer(peer), context, TagMatch::Exact(tag));
        }
        self.post_as(request, Source::Peer(peer), context, TagMatch::Exact(tag));
    }

    /// The first piece of a message is matched: the others know their names now.
    #[cold]
    pub(crate) fn first_piece_matched(&mut self, message: u64, envelope: &Envelope) {
        let Some(unpacked) = self.messages.get_mut(message) else { return };
        unpacked.origin = Some((envelope.peer, envelope.seq));
        let (waiting, ended) = (core::mem::take(&mut unpacked.waiting), unpacked.ended);
        for (request, piece) in waiting {
            self.post_piece(request, envelope.peer, envelope.context, envelope.seq, piece);
        }
        if ended {
            self.messages.remove(message);
        }
    }

    /// The first piece of a message has failed: its other pieces fail too.
    pub(crate) fn first_piece_failed(&mut self, message: u64, error: Error) {
        let Some(unpacked) = self.messages.get_mut(message) else { return };
        unpacked.failed = Some(error);
        let (waiting, ended) = (core::mem::take(&mut unpacked.waiting), unpacked.ended);
        for (request, _) in waiting {
            self.fail_request(request, error);
        }
        if ended {
            self.messages.remove(message);
        }
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

impl Peer {
    /// Gives a message its number in its flow, or notes that the flow has messages without; the hints that
    /// hold then.
    #[inline(always)]
    fn number(&mut self, envelope: &mut Envelope, hints: Hints, refused: Option<Refused>) -> Hints {
        let flow = self.flows.of(envelope.context.0);
        // A permission that is not used where Rtrs are, which rely on the order.
        let hints = Hints { unordered: hints.unordered && !flow.invited, ..hints };
        if hints.unordered {
            flow.relaxed = true;
        } else if let Some(refused) = refused {
            envelope.seq = refused.seq;
        } else {
            envelope.seq = flow.send_next;
            flow.send_next = flow.send_next.wrapping_add(1);
        }
        hints
    }
}
