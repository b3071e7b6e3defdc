//! Push (`Protocol::Push`): on a single reliable rail the first part of a large message follows its request
//! to send without waiting for an answer, as a chunk on the same link; the whole message if it is short or
//! the receiver is late.
//!
//! The receiver's rail stops the link at the chunk until the engine has named its receive region: that of
//! the posted receive, so that nothing is copied, or else a buffer of the engine. Both sides charge the
//! chunk like eager data, so that data without a posted receive stays within the credit. The rest that the
//! sender could not push is sent by rendezvous while the pushed part keeps the wire busy. A link that
//! pushes is the only one, so if it is lost the peer is lost: the send ends with
//! [`crate::Error::PeerLost`], and incomplete messages are dropped.

use crate::clock::Instant;
use crate::collect::request::{Envelope, Error, Hints};
use crate::engine::Engine;
use crate::engine::arrive::Wrong;
use crate::engine::depart::{Load, book};
use crate::engine::peer::Peer;
use crate::memory::Segments;
use crate::packet::{Key, PeerId, RailId, RegionId, RequestId};
use crate::profile::sample::Method;
use crate::protocol::leaving::{Leaving, Submitted, To};
use crate::protocol::regions::living_rails;
use crate::protocol::rendezvous::{Kept, LargeSend, SendState};
use crate::protocol::rules::{Family, Message, Rules, Submission};
use crate::protocol::{Protocol, Request, rendezvous};
use crate::schedule::body::Body;
use crate::transfer::driver::Sent;
use crate::transfer::rail::Opening;
use crate::transfer::region::{Announced, Region, Stage};
use crate::transfer::retention::{Cargo, ChunkCargo};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nmad_wire::{ChunkHeader, Rts};

/// Length of the pushed part if the message cannot be pushed as a whole: the answer arrives before this
/// part is sent. A whole chunk is better if there is credit for it, since each call that sends less than
/// possible has a cost (TCP between two hosts on a Zen 4, there and back: 15 us for one additional call, of
/// 110 that 1 MiB takes; 2 MiB reach .85 of the best plain sockets with this part, .90 with 1 MiB).
const AHEAD: u64 = 256 << 10;

pub(crate) const RULES: Rules =
    Rules { protocol: Protocol::Push, family: Family::Rendezvous, fits, cost, begin };

/// A pushed chunk that is expected and has not begun to arrive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Push {
    /// The sender's request.
    request: u64,
    region: RegionId,
    len: u64,
}

fn fits(message: &Message, peer: &Peer) -> bool {
    let may = message.hints.probe != Some(Method::Rendezvous) && !message.is_invited;
    may && peer.pushes_part(message.len, message.chunk) && !peer.doubts_rail(message.len, message.hints)
}

fn cost(message: &Message, peer: &Peer) -> u64 {
    peer.body_ns(message.len)
}

fn begin(engine: &mut Engine, submission: Submission) -> RequestId {
    let submission = match engine.begin_cut(submission) {
        Ok(request) => return request,
        Err(whole) => whole,
    };
    match engine.spend_push(&submission.envelope) {
        0 => (rendezvous::RULES.begin)(engine, submission),
        len => engine.begin_large(submission, Protocol::Push, SendState::Ahead { len }),
    }
}

impl Peer {
    /// Returns the longest chunk that may be pushed of a message of `len` bytes; chunks are at most `chunk`
    /// bytes unless the receiver is late. `None`: nothing may be pushed.
    fn longest_push(&self, len: u64, chunk: u64) -> Option<u64> {
        let limits = self.way.push.filter(|limits| len <= limits.message)?;
        let is_whole = len > chunk && len <= limits.chunk && self.pushes_all(len);
        Some(if is_whole { len } else { limits.chunk.min(chunk) })
    }

    /// Whether a message is too large for a packet over the single rail, and short enough to be pushed as a
    /// whole.
    #[inline]
    pub(crate) fn is_one_push(&self, len: u64, chunk: u64) -> bool {
        let below = self.way.at_once_below;
        let is_large = self.way.lane.is_some() && below > 0 && below <= len;
        is_large && self.longest_push(len, chunk).is_some_and(|longest| len <= longest)
    }

    /// Whether a message would be pushed as a whole, without other control data to send, and with credit
    /// left for `spare` more.
    pub(crate) fn pushes_whole(&self, len: u64, chunk: u64, spare: u64) -> bool {
        // Longer ones are pushed to late receivers if there is credit.
        let has_credit = len > chunk || self.credit.has_for_push(len, spare);
        self.is_one_push(len, chunk) && has_credit && !self.credit.owes_limit()
    }

    /// Whether a message that is pushed as a chunk would use rendezvous if its receiver were timely. It then
    /// counts towards the next probe.
    fn might_ask(&self, len: u64) -> bool {
        self.is_readable(len) || self.asks_for_time(len)
    }

    /// Whether a part of a message would be pushed.
    fn pushes_part(&self, len: u64, chunk: u64) -> bool {
        let part = |most: u64| AHEAD.min(most).min(len);
        self.longest_push(len, chunk).is_some_and(|most| self.credit.has_for_push(part(most), 0))
    }
}

impl Engine {
    /// Returns the number of bytes to push of a large message, and charges them.
    pub(crate) fn spend_push(&mut self, envelope: &Envelope) -> u64 {
        let chunk = self.config.chunk;
        let Some(peer) = self.peer_mut(envelope.peer) else { return 0 };
        let Some(most) = peer.longest_push(envelope.len, chunk) else { return 0 };
        if most > chunk {
            peer.credit.spend_known(envelope.len);
            peer.lateness.sent_eagerly();
            return envelope.len;
        }
        if peer.might_ask(envelope.len) {
            peer.lateness.sent_eagerly();
        }
        // The rest is sent by rendezvous.
        if envelope.len > chunk {
            peer.lateness.used_rendezvous();
        }
        peer.credit.spend_push(envelope.len, AHEAD.min(most), most)
    }

    /// Books a pushed message that was sent after its request to send, completely or in part.
    pub(crate) fn push_departed(
        &mut self,
        leaving: &Leaving,
        sent: Sent,
        to: To,
        (data, hints): (&Segments, Hints),
        until: Instant,
    ) -> Submitted {
        let Engine { peers, rails, config, .. } = self;
        let (request, seq, len) = (leaving.request, leaving.seq, data.len());
        let Some(peer) = peers.get_mut(to.0) else {
            return Submitted::Request(request);
        };
        peer.flows.requested += 1;
        if len > config.chunk || peer.might_ask(len) {
            peer.lateness.sent_eagerly();
        }
        let link = &mut peer.links[usize::from(leaving.plan.place)];
        let at = &mut rails[link.rail.index()];
        let is_part = sent == Sent::Posted;
        let packet = is_part.then(|| (Cargo::Packet(None), Vec::new()));
        let chunk = is_part.then(|| {
            let region = RegionId(request.0);
            let cargo = ChunkCargo { request, region, key: Key::PUSH, offset: 0, from: data.clone() };
            (Cargo::Chunk(cargo), Vec::new())
        });
        let head = Rts::ALONE_LEN as u64;
        book(until, to.0, link, at, Load { entries: Some(1), len: head, busy: 0, kept: packet });
        let busy = head + len + ChunkHeader::LEN as u64;
        book(until, to.0, link, at, Load { entries: None, len, busy, kept: chunk });
        at.posted(None, until);
        self.note_chunk(to.0, leaving.rail());
        if !is_part {
            self.requests.remove(request.0);
            return Submitted::Ended(seq);
        }
        let envelope = Envelope { peer: to.0, context: to.1, tag: to.2, len, seq };
        let mut send =
            LargeSend::new(Protocol::Push, SendState::Ahead { len }, envelope, data.clone(), hints);
        send.at_rails = 1;
        if let Some(place) = self.requests.get_mut(request.0) {
            *place = Request::Large(Box::new(send));
        }
        // Another thread may have found meanwhile that the peer is lost.
        if self.peer(to.0).is_none_or(|peer| peer.is_gone()) {
            self.complete(request, Err(Error::PeerLost(to.0)));
        }
        Submitted::Request(request)
    }

    /// Records that the request to send of a large message is sent, and queues its pushed part.
    pub(crate) fn request_left(&mut self, now: Option<Instant>, request: RequestId) {
        let Some(Request::Large(send)) = self.requests.get_mut(request.0) else { return };
        send.timing.asked_at = now;
        if let Some(carried) = &mut send.carried {
            carried.is_in_window = false;
            if matches!(send.kept, Kept::Wanted) && !send.kept.is_reclaimed(send.state) {
                self.consider_keeping(request);
            }
        }
        let Some(Request::Large(send)) = self.requests.get_mut(request.0) else { return };
        if send.kept.is_reclaimed(send.state) {
            return self.reclaim(request);
        }
        let SendState::Ahead { len } = send.state else { return };
        let (to, priority) = (send.envelope.peer, send.hints.priority);
        let Some(peer) = self.peer_mut(to) else { return };
        peer.add_body(Body::pushed(request, priority, len));
        self.make_ready(to);
    }

    /// Records that a chunk of `len` bytes will be pushed by the peer for this receive region.
    pub(crate) fn await_push(&mut self, from: PeerId, theirs: u64, region: RegionId, len: u64) {
        let is_stored = self.regions.get(region.0).is_some_and(|region| region.buffer.is_some());
        let Some(peer) = self.peer_mut(from) else { return };
        peer.states.pushes.push(Push { request: theirs, region, len });
        if !is_stored {
            peer.credit.consume(len);
        }
    }

    /// Makes a receive region with a buffer of the engine for a pushed chunk without a posted receive.
    pub(crate) fn store_push(&mut self, from: PeerId, theirs: u64, len: u64) -> RegionId {
        let rails = self.peer(from).map(living_rails).unwrap_or_default();
        let buffer = self.spare.take(len as usize);
        let mut region = Region::stored(from, buffer, rails.iter().copied());
        region.blocks_len = self.receives.blocks.len_of(from, theirs);
        let into = region.into.clone();
        let id = RegionId(self.regions.insert(region));
        for rail in rails {
            self.open_on(rail, Opening::Open(id, from, into.clone()));
        }
        self.await_push(from, theirs, id, len);
        id
    }

    /// Handles the start of a pushed chunk: names its receive region, so that its link continues.
    pub(crate) fn on_pushed(
        &mut self,
        rail: RailId,
        from: PeerId,
        request: u64,
        len: u64,
    ) -> Result<(), Wrong> {
        let Some(peer) = self.peer_mut(from).filter(|peer| !peer.is_gone()) else { return Ok(()) };
        let pushes = &mut peer.states.pushes;
        let place = pushes.iter().position(|push| push.request == request);
        let push = place.map(|place| pushes.swap_remove(place)).filter(|push| push.len == len);
        let Some(Push { region, .. }) = push else {
            return Err("pushed chunk that was not announced");
        };
        self.open_on(rail, Opening::Accept(from, region));
        Ok(())
    }

    /// Matches a receive to a message whose pushed part is stored here, or will be.
    pub(crate) fn claim_stored(&mut self, request: RequestId, stored: RegionId, announced: Announced) {
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return };
        if let Some(invited) = recv.region.replace(stored) {
            self.close_region(invited);
        }
        let Some(region) = self.regions.get_mut(stored.0) else { return };
        region.request = request;
        region.stage = Stage::Matched(Announced { knows_keys: true, ..announced });
        self.consider_stored(stored);
    }

    /// If a pushed part is stored completely and matched, copies it to the receive, which gets the rest by
    /// rendezvous if there is more.
    pub(crate) fn consider_stored(&mut self, stored: RegionId) {
        let Some(region) = self.regions.get(stored.0).filter(|region| region.is_full()) else { return };
        let (request, pushed) = (region.request, region.into.len());
        let Stage::Matched(announced) = region.stage else { return };
        let Announced { envelope, len, request: theirs, fin, .. } = announced;
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return };
        let (into, _) = recv.body(len);
        into.copy_from(&region.into);
        let wanted = len.min(into.len());
        recv.region = None;
        self.close_region(stored);
        if let Some(peer) = self.peer_mut(envelope.peer) {
            peer.credit.consume(pushed);
        }
        self.consider_credit(envelope.peer);
        if wanted > pushed {
            return self.request_rest(request, pushed, Announced { knows_keys: false, ..announced });
        }
        if fin || pushed < len {
            self.send_fin(envelope.peer, theirs);
        }
        self.end_recv(request, envelope);
    }

    fn request_rest(&mut self, request: RequestId, pushed: u64, announced: Announced) {
        let id = self.new_region(request, announced.envelope.peer);
        let Some(region) = self.regions.get_mut(id.0) else { return };
        region.stage = Stage::Matched(announced);
        region.landed(0, pushed);
        if region.is_ready() {
            self.send_keys(id);
        }
    }

    /// Drops stored messages of a lost peer that are incomplete or can no longer match.
    pub(crate) fn forget_stored(&mut self, from: PeerId) {
        let of_peer = |region: &Region| region.from == from && region.buffer.is_some();
        let stored = self.regions.iter().filter(|(_, region)| of_peer(region));
        let stored: Vec<_> = stored.map(|(name, _)| RegionId(name)).collect();
        for id in stored {
            if !self.receives.matching.keeps(id) && !self.claims(id) {
                self.close_region(id);
            }
        }
    }
}
