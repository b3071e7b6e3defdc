//! Large messages, both ways: Rts, Cts and Fin, and receive regions. Receives that were posted early save the
//! handshake ([`crate::protocol::rtr`]).

use crate::clock::Instant;
use crate::collect::matching::Comes;
use crate::collect::request::{Context, Envelope, Error, Grant, Hints, Request, TagMatch};
use crate::collect::window::Entry;
use crate::engine::Engine;
use crate::memory::Buffer;
use crate::packet::{Key, PeerId, RailId, RegionId, RequestId};
use crate::schedule::body::Body;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::Opening;
use crate::transfer::region::{Announced, Region};
use alloc::sync::Arc;
use alloc::vec::Vec;
use nmad_wire::{Cts, Fin, Frame, Rtr, Rts, flags};

/// A grant that nobody can use.
pub(crate) const NO_KEY: &str = "region without a key for any rail that is left";

impl Engine {
    /// Announces a large message; with an Rtr its body follows at once.
    pub(crate) fn request_to_send(&mut self, request: RequestId, rtr: Option<Rtr>) {
        let Some(Request::Large(outgoing)) = self.requests.get_mut(request.0) else { return };
        outgoing.invited = rtr.is_some();
        let (envelope, hints) = (outgoing.envelope, outgoing.hints);
        let pushed = outgoing.pushed;
        let address = if rtr.is_none() { outgoing.address } else { 0 };
        let way = match (pushed, address) {
            (1.., _) => flags::PUSHED,
            (_, 1..) => flags::READ,
            _ => 0,
        };
        let rts = Rts {
            flags: flags::of(outgoing.wants_fin || outgoing.is_timed, hints.unordered, rtr.is_some()) | way,
            context: envelope.context.0,
            tag: envelope.tag.0,
            seq: envelope.seq,
            len: envelope.len,
            request: request.0,
            region: rtr.map_or(0, |p| p.region),
            pushed,
            address,
        };
        let frame = Frame::Rts(rts).to_vec();
        let Some(peer) = self.peer_mut(envelope.peer) else { return };
        peer.announced += 1;
        if address > 0 {
            peer.offers_to_read();
        }
        let rail = peer.wished(hints.rail);
        peer.window.submit(rail, Entry::rts(frame, Some(request), &hints));
        if !hints.unordered && rtr.is_none() && pushed == 0 && address == 0 {
            peer.requested.insert((envelope.context.0, envelope.seq), request.0);
        }
        self.make_ready(envelope.peer);
        if let Some(Rtr { region, len, keys, .. }) = rtr {
            self.grant(request, Grant { region: RegionId(region), len: len.min(envelope.len), keys });
        }
    }

    /// The receiver's receive region is known: the body may go.
    pub(crate) fn grant(&mut self, request: RequestId, grant: Grant) {
        let Some(Request::Large(outgoing)) = self.requests.get_mut(request.0) else { return };
        let Hints { priority, rail, strategy, .. } = outgoing.hints;
        let (envelope, to) = (outgoing.envelope, outgoing.envelope.peer);
        let pushed = outgoing.pushed;
        outgoing.grant = Some(grant);
        outgoing.sent = outgoing.sent.min(pushed);
        let Some(peer) = self.peer_mut(to) else { return };
        peer.asks_no_more(&envelope, request);
        peer.bodies.retain(|body| body.request != request || body.push);
        if grant.len <= pushed {
            return self.consider_sent(request);
        }
        let rail = peer.wished(rail);
        let at = peer.bodies.partition_point(|body| body.priority >= priority);
        peer.bodies.insert(at, Body::new(request, (priority, strategy), (pushed, grant.len - pushed), rail));
        self.make_ready(to);
    }

    pub(crate) fn on_cts(&mut self, now: Instant, from: PeerId, cts: Cts) -> Result<(), &'static str> {
        let Some(Request::Large(outgoing)) = self.requests.get(cts.request) else { return Ok(()) };
        if outgoing.envelope.peer != from || cts.len > outgoing.envelope.len {
            return Err("Cts for a request that is not its own");
        }
        // The answer to a request that an Rtr has meanwhile granted; the same receive region.
        if outgoing.grant.is_some_and(|grant| grant.region.0 == cts.region) {
            return Ok(());
        }
        if outgoing.address > 0 {
            self.no_more_reads(from);
        }
        let grant = Grant { region: RegionId(cts.region), len: cts.len, keys: cts.keys };
        if !self.peer(from).is_some_and(|peer| peer.can_use(&grant.keys)) {
            return Err(NO_KEY);
        }
        self.note_answer(now, RequestId(cts.request));
        self.grant(RequestId(cts.request), grant);
        Ok(())
    }

    pub(crate) fn on_fin(&mut self, now: Instant, from: PeerId, fin: Fin) -> Result<(), &'static str> {
        let request = RequestId(fin.request);
        self.timed_large(now, from, fin.request);
        self.note_read(now, request);
        match self.requests.get_mut(fin.request) {
            Some(Request::Eager(eager)) if eager.envelope.peer == from => {
                if !eager.wants_fin {
                    return Err("Fin for a message that does not wait for it");
                }
                eager.has_fin = true;
                self.consider_eager(request);
            }
            Some(Request::Large(outgoing)) if outgoing.envelope.peer == from => {
                outgoing.has_fin = true;
                let (due, answer_ns) = (core::mem::take(&mut outgoing.due), outgoing.answer_ns);
                let (shared, strategy) = (outgoing.shared.take(), outgoing.hints.strategy);
                let envelope = outgoing.envelope;
                if let Some(peer) = self.peer_mut(from) {
                    if let Some((at, len, rails)) = shared {
                        peer.strategy_of(strategy).carried(len, rails, now.since(at));
                    }
                    peer.bodies.retain(|body| body.request != request || body.push);
                    peer.asks_no_more(&envelope, request);
                }
                self.note_end(now, from, due, answer_ns);
                self.consider_sent(request);
            }
            _ => {}
        }
        Ok(())
    }

    /// A large send ends when no rail holds a chunk of it and everything has arrived, or, where nothing
    /// has to be kept, has left.
    pub(crate) fn consider_sent(&mut self, request: RequestId) {
        let Some(Request::Large(outgoing)) = self.requests.get(request.0) else { return };
        let all = outgoing.grant.map_or(outgoing.envelope.len, |grant| grant.len.max(outgoing.pushed));
        // Bytes that were announced as pushed are sent, whatever becomes of them.
        let enough = if outgoing.has_fin { outgoing.pushed } else { all };
        let done = (outgoing.has_fin || !outgoing.wants_fin) && outgoing.sent >= enough;
        if done && outgoing.at_rails == 0 {
            let envelope = outgoing.envelope;
            self.complete(request, Ok(envelope));
        }
    }

    /// A receive has matched a large message: its memory becomes a receive region.
    pub(crate) fn grant_region(
        &mut self,
        request: RequestId,
        envelope: Envelope,
        theirs: u64,
        fin: bool,
        body: Comes,
    ) {
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return };
        recv.posted = None;
        let (into, invited, message) = (recv.into.clone(), recv.region, recv.message);
        if let Some(message) = message {
            self.first_piece_matched(message, &envelope);
        }
        let Some(peer) = self.peer_mut(envelope.peer) else { return };
        let parts = matches!(body, Comes::Parts(_));
        peer.flows.of(envelope.context.0).large = !parts;
        let pushed = match body {
            Comes::Stored(stored) => return self.claim_stored(request, envelope, theirs, fin, stored),
            // The link takes it all, so it needs memory for it all.
            Comes::Pushed(len) if len > into.len() => {
                let stored = self.store_push(envelope.peer, theirs, len);
                return self.claim_stored(request, envelope, theirs, fin, stored);
            }
            Comes::Parts(len) if len > into.len() => {
                let stored = self.store_parts(envelope.peer, theirs, len, true);
                return self.claim_stored(request, envelope, theirs, fin, stored);
            }
            Comes::Pushed(len) | Comes::Parts(len) => len,
            Comes::Asked | Comes::Invited(_) | Comes::Read(_) => 0,
        };
        if into.is_empty() || envelope.len == 0 {
            self.send_fin(envelope.peer, theirs);
            if let Some(region) = invited {
                self.close_region(region);
            }
            return self.end_recv(request, envelope);
        }
        if let Comes::Read(address) = body {
            return self.read(request, envelope, theirs, address);
        }
        let id = invited.unwrap_or_else(|| match parts {
            true => self.new_region_on(request, envelope.peer, Vec::new()),
            false => self.new_region(request, envelope.peer),
        });
        let Some(region) = self.regions.get_mut(id.0) else { return };
        let whole = pushed > 0 && pushed == envelope.len.min(into.len());
        let knows_keys = whole || body == Comes::Invited(id);
        // A sender that has more to send than is wanted would wait for the keys.
        let fin = fin || (whole && pushed < envelope.len);
        region.announced = Some(Announced { envelope, request: theirs, fin, knows_keys });
        if region.is_ready() && !knows_keys {
            self.tell_keys(id);
        }
        if parts {
            return self.await_parts(envelope.peer, theirs, id, pushed);
        }
        if pushed > 0 {
            return self.await_push(envelope.peer, theirs, id, pushed);
        }
        self.consider_landed(id);
    }

    pub(crate) fn new_region(&mut self, request: RequestId, from: PeerId) -> RegionId {
        let rails: Vec<RailId> = self.peer(from).map(Self::living_rails).unwrap_or_default();
        self.new_region_on(request, from, rails)
    }

    /// The same, open to chunks over these rails; none: the message comes in packets.
    fn new_region_on(&mut self, request: RequestId, from: PeerId, rails: Vec<RailId>) -> RegionId {
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return RegionId(0) };
        let into = recv.into.clone();
        let region = Region::new(request, from, into.clone(), rails.iter().copied());
        let id = RegionId(self.regions.insert(region));
        for rail in rails {
            self.open_on(rail, Opening::Open(id, from, into.clone()));
        }
        if let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) {
            recv.region = Some(id);
        }
        id
    }

    /// Rails that may carry chunks now or later: also those whose link is still to open.
    pub(crate) fn living_rails(peer: &crate::engine::peer::Peer) -> Vec<RailId> {
        peer.links.iter().filter(|link| link.state != State::Dead).map(|link: &Link| link.rail).collect()
    }

    /// What rail `rail` shall open or close next.
    pub fn next_opening(&mut self, rail: RailId) -> Option<Opening> {
        let opening = self.rails.get_mut(rail.index())?.openings.pop_front()?;
        self.closing -= usize::from(opening.frees_user_memory());
        Some(opening)
    }

    /// A rail has opened a receive region; this key leads there.
    pub fn opened(&mut self, rail: RailId, region: RegionId, key: Key) {
        match self.regions.get_mut(region.0).filter(|region| region.awaits(rail)) {
            Some(awaiting) => {
                if awaiting.opened(rail, key) {
                    self.tell_keys(region);
                }
            }
            // It was closed, or the rail lost its link, while the rail was still to be asked.
            None => self.open_on(rail, Opening::Close(region, None)),
        }
    }

    /// All rails have opened a receive region: tells its keys, as the answer to a request or as an Rtr.
    pub(crate) fn tell_keys(&mut self, id: RegionId) {
        let Some(region) = self.regions.get(id.0) else { return };
        let (from, keys, len) = (region.from, region.keys, region.into.len());
        let frame = match region.announced {
            Some(Announced { knows_keys: true, .. }) => return,
            Some(Announced { request, envelope, .. }) => {
                Frame::Cts(Cts { request, region: id.0, len: len.min(envelope.len), keys })
            }
            None => {
                let Some(Request::Recv(recv)) = self.requests.get(region.request.0) else { return };
                let (Context(context), TagMatch::Exact(tag)) = (recv.context, recv.tag) else { return };
                // Cancelled before it was announced: the peer answers that it knows nothing of it.
                if recv.withdrawn {
                    return;
                }
                let Some(peer) = self.peer_mut(from) else { return };
                let seq = peer.flows.of(context).recv_next;
                Frame::Rtr(Rtr { context, tag: tag.0, seq, region: id.0, len, keys })
            }
        };
        if let Some(peer) = self.peer_mut(from) {
            peer.control(&frame);
            self.make_ready(from);
        }
    }

    /// A chunk lies in a receive region.
    pub(crate) fn on_landed(
        &mut self,
        from: PeerId,
        id: RegionId,
        offset: u64,
        len: u64,
    ) -> Result<(), &'static str> {
        let Some(region) = self.regions.get_mut(id.0) else { return Ok(()) };
        if region.from != from || !region.landed(offset, len) {
            return Err("chunk outside of its region");
        }
        if region.buffer.is_some() {
            self.consider_stored(id);
            return Ok(());
        }
        self.consider_landed(id);
        Ok(())
    }

    pub(crate) fn consider_landed(&mut self, id: RegionId) {
        let Some(region) = self.regions.get(id.0).filter(|region| region.is_complete()) else { return };
        let (request, announced) = (region.request, region.announced);
        self.close_region(id);
        let Some(Announced { envelope, request: theirs, fin, .. }) = announced else { return };
        if fin {
            self.send_fin(envelope.peer, theirs);
        }
        self.end_recv(request, envelope);
    }

    /// Tells a sender that its message is here (Fin), by the number of its request.
    pub(crate) fn send_fin(&mut self, to: PeerId, theirs: u64) {
        let Some(peer) = self.peer_mut(to) else { return };
        peer.control(&Frame::Fin(Fin { request: theirs }));
        self.make_ready(to);
    }

    /// A receive has its message, whole or cut.
    pub(crate) fn end_recv(&mut self, request: RequestId, envelope: Envelope) {
        let Some(Request::Recv(recv)) = self.requests.get(request.0) else { return };
        let capacity = recv.into.len();
        let cut = envelope.len > capacity;
        self.complete(request, if cut { Err(Error::Truncated { envelope, capacity }) } else { Ok(envelope) });
    }

    pub(crate) fn close_region(&mut self, id: RegionId) {
        let Some(mut region) = self.regions.remove(id.0) else { return };
        let memory = region.buffer.take().map(Arc::new);
        for rail in region.rails() {
            self.open_on(rail, Opening::Close(id, memory.clone()));
        }
        self.give_back(memory);
    }

    /// A rail uses this memory of the engine's own no more; when none does, it is used again.
    pub(crate) fn give_back(&mut self, memory: Option<Arc<Buffer>>) {
        let unused = memory.and_then(|memory| Arc::try_unwrap(memory).ok());
        unused.into_iter().for_each(|buffer| self.spare.give(buffer));
    }
}
