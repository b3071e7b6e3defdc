//! Pushed bodies: on a single reliable rail the first part of a large message follows its request to send
//! without waiting for an answer, as a chunk on the same link; all of it if the receiver is late.
//!
//! The receiver's rail holds the link at the chunk until the engine has said where it goes: to the receive
//! if one was posted, so nothing is copied, or else to a buffer of our own. Both sides charge it like
//! eager data, so that what nobody has asked for stays within the credit. What the sender could not push
//! goes the usual way, while the pushed part keeps the wire busy.

use crate::collect::request::{Envelope, Request};
use crate::engine::Engine;
use crate::engine::lane::Lane;
use crate::engine::peer::{Peer, Push};
use crate::packet::{PeerId, RailId, RegionId, RequestId};
use crate::schedule::body::Body;
use crate::transfer::rail::Opening;
use crate::transfer::region::{Announced, Region};

/// The least that is pushed of a message that cannot be pushed whole: the answer is there before that is
/// over. A whole chunk is better, where there is credit for it: each call that sends less than there is costs
/// (TCP between two hosts on a Zen 4, there and back: 15 us for one call more, of 110 that 1 MiB takes; 2 MiB
/// at .85 of the best plain sockets with this, .90 with 1 MiB).
const AHEAD: u64 = 256 << 10;

impl Engine {
    /// How many bytes of a large message go ahead; they are charged.
    pub(crate) fn spend_push(&mut self, envelope: &Envelope) -> u64 {
        let chunk = self.config.chunk;
        let Some(peer) = self.peer_mut(envelope.peer) else { return 0 };
        let Some(most) = peer.longest_push(envelope.len, chunk) else { return 0 };
        if most > chunk {
            peer.credit.spend_known(envelope.len);
            peer.lateness.unasked();
            return envelope.len;
        }
        if peer.is_readable(envelope.len) {
            peer.lateness.unasked();
        }
        // It asks for its rest.
        if envelope.len > chunk {
            peer.lateness.asks();
        }
        peer.credit.spend_push(envelope.len, AHEAD.min(most), most)
    }

    /// The request to send is on its way, and what goes ahead follows it.
    #[cold]
    pub(crate) fn push_body(&mut self, request: RequestId) {
        let Some(Request::Large(outgoing)) = self.requests.get(request.0) else { return };
        let (to, priority, len) = (outgoing.envelope.peer, outgoing.hints.priority, outgoing.pushed);
        let Some(peer) = self.peer_mut(to) else { return };
        let at = peer.bodies.partition_point(|body| body.priority >= priority);
        peer.bodies.insert(at, Body::pushed(request, priority, len));
        self.make_ready(to);
    }

    /// A chunk of `len` bytes will come from the peer, for this receive region.
    pub(crate) fn await_push(&mut self, from: PeerId, theirs: u64, region: RegionId, len: u64) {
        let stored = self.regions.get(region.0).is_some_and(|region| region.buffer.is_some());
        let Some(peer) = self.peer_mut(from) else { return };
        peer.pushes.push(Push { request: theirs, region, len });
        if !stored {
            peer.credit.consume(len);
        }
    }

    /// Memory of our own for a chunk that nobody has asked for yet.
    pub(crate) fn store_push(&mut self, from: PeerId, theirs: u64, len: u64) -> RegionId {
        let rails = self.peer(from).map(Self::living_rails).unwrap_or_default();
        let buffer = self.spare.take(len as usize);
        let region = Region::stored(from, buffer, rails.iter().copied());
        let into = region.into.clone();
        let id = RegionId(self.regions.insert(region));
        for rail in rails {
            self.open_on(rail, Opening::Open(id, from, into.clone()));
        }
        self.await_push(from, theirs, id, len);
        id
    }

    /// A pushed chunk has begun to arrive: its link goes on when it knows the receive region.
    pub(crate) fn on_pushed(
        &mut self,
        rail: RailId,
        from: PeerId,
        request: u64,
        len: u64,
    ) -> Result<(), &'static str> {
        let Some(peer) = self.peer_mut(from).filter(|peer| !peer.is_gone()) else { return Ok(()) };
        let place = peer.pushes.iter().position(|push| push.request == request);
        let push = place.map(|place| peer.pushes.swap_remove(place)).filter(|push| push.len == len);
        let Some(Push { region, .. }) = push else {
            return Err("pushed chunk that was not announced");
        };
        self.open_on(rail, Opening::Accept(from, region));
        Ok(())
    }

    /// A receive has matched a message whose beginning is stored here, or about to be.
    pub(crate) fn claim_stored(
        &mut self,
        request: RequestId,
        envelope: Envelope,
        theirs: u64,
        fin: bool,
        stored: RegionId,
    ) {
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return };
        if let Some(invited) = recv.region.replace(stored) {
            self.close_region(invited);
        }
        let Some(region) = self.regions.get_mut(stored.0) else { return };
        region.request = request;
        region.announced = Some(Announced { envelope, request: theirs, fin, knows_keys: true });
        self.consider_stored(stored);
    }

    /// All that was pushed is stored and a receive has matched it: the receive gets it and, if there is
    /// more, asks for the rest.
    pub(crate) fn consider_stored(&mut self, stored: RegionId) {
        let Some(region) = self.regions.get(stored.0).filter(|region| region.is_full()) else { return };
        let (request, pushed) = (region.request, region.into.len());
        let Some(Announced { envelope, request: theirs, fin, .. }) = region.announced else { return };
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return };
        recv.into.copy_from(&region.into);
        recv.region = None;
        let wanted = envelope.len.min(recv.into.len());
        self.close_region(stored);
        if let Some(peer) = self.peer_mut(envelope.peer) {
            peer.credit.consume(pushed);
        }
        self.consider_credit(envelope.peer);
        if wanted > pushed {
            return self.ask_for_rest(
                request,
                pushed,
                Announced { envelope, request: theirs, fin, knows_keys: false },
            );
        }
        if fin || pushed < envelope.len {
            self.send_fin(envelope.peer, theirs);
        }
        self.end_recv(request, envelope);
    }

    fn ask_for_rest(&mut self, request: RequestId, pushed: u64, announced: Announced) {
        let id = self.new_region(request, announced.envelope.peer);
        let Some(region) = self.regions.get_mut(id.0) else { return };
        region.announced = Some(announced);
        region.landed(0, pushed);
        if region.is_ready() {
            self.tell_keys(id);
        }
    }

    /// The peer is gone: what of its messages is incomplete, or can match no more, is dropped.
    pub(crate) fn forget_stored(&mut self, from: PeerId) {
        let of_peer = |region: &Region| region.from == from && region.buffer.is_some();
        let stored = self.regions.iter().filter(|(_, region)| of_peer(region));
        let stored: alloc::vec::Vec<_> = stored.map(|(name, _)| RegionId(name)).collect();
        for id in stored {
            if !self.matching.keeps(id) && !self.claims(id) {
                self.close_region(id);
            }
        }
    }
}

impl Peer {
    /// The longest chunk that may be pushed of a message of `len` bytes, if chunks are no longer than `chunk`
    /// unless the receiver is late; none: nothing may be.
    fn longest_push(&self, len: u64, chunk: u64) -> Option<u64> {
        let (_, longest) = self.may_push.filter(|(most, _)| len <= *most)?;
        let is_whole = len > chunk && len <= longest && self.pushes_all(len);
        Some(if is_whole { len } else { longest.min(chunk) })
    }

    /// Whether a message is larger than what goes in a packet over the only rail, and not too long to be
    /// pushed whole.
    #[inline]
    pub(crate) fn is_one_push(&self, len: u64, chunk: u64) -> bool {
        let large = |lane: Lane| lane.below > 0 && lane.below <= len;
        self.lane.is_some_and(large) && self.longest_push(len, chunk).is_some_and(|longest| len <= longest)
    }

    /// Whether a message would be pushed whole, with nothing else to be told, and credit left for `spare`
    /// more.
    pub(crate) fn pushes_whole(&self, len: u64, chunk: u64, spare: u64) -> bool {
        // Longer ones are pushed to late receivers, if there is credit.
        let has_credit = len > chunk || self.credit.has_for_push(len, spare);
        self.is_one_push(len, chunk) && has_credit && !self.credit.owes_limit()
    }

    /// Whether a part of a message would go ahead of any answer.
    pub(crate) fn pushes_part(&self, len: u64, chunk: u64) -> bool {
        let part = |most: u64| AHEAD.min(most).min(len);
        self.longest_push(len, chunk).is_some_and(|most| self.credit.has_for_push(part(most), 0))
    }
}
