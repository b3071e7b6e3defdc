//! Receive regions: the receiver's side of the protocols of large messages.
//!
//! The memory of a receive that has matched a large message becomes a receive region ([`Stage::Matched`]).
//! Each rail opens it and answers with a key, and the sender gets all keys in a Cts. A region may also be
//! open before its message is known ([`Stage::Unmatched`]): for an Rtr ([`super::rtr`]), or as a buffer of
//! the engine for unexpected data ([`super::push`], [`super::parts`]). When all bytes have arrived, it
//! closes and the receive completes. A region does not wait for a rail whose link is dead; when the peer is
//! lost it closes.

use crate::collect::matching::Comes;
use crate::collect::request::{Context, Envelope, TagMatch};
use crate::engine::Engine;
use crate::engine::arrive::Wrong;
use crate::engine::peer::Peer;
use crate::memory::Buffer;
use crate::packet::{Key, PeerId, RailId, RegionId, RequestId};
use crate::protocol::Request;
use crate::slab::Slab;
use crate::transfer::link::State;
use crate::transfer::rail::Opening;
use crate::transfer::region::{Announced, Region, Stage};
use alloc::sync::Arc;
use alloc::vec::Vec;
use nmad_wire::{Cts, Frame, Rtr};

impl Engine {
    /// Makes the memory of a receive that has matched a large message a receive region.
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
        let message = recv.message;
        if let Some(message) = message {
            self.first_piece_matched(message, &envelope);
        }
        self.place_stored(request, &envelope, theirs);
        let Some(Request::Recv(recv)) = self.requests.get(request.0) else { return };
        let ((into, len), invited) = (recv.body(envelope.len), recv.region);
        let into = into.clone();
        let Some(peer) = self.peer_mut(envelope.peer) else { return };
        let is_in_parts = matches!(body, Comes::Parts(_));
        peer.flows.of(envelope.context.0).large = !is_in_parts;
        let prompt = self.is_waiting;
        let announced = Announced { envelope, len, request: theirs, fin, knows_keys: false, prompt };
        let ahead = match body {
            Comes::Stored(stored) => return self.claim_stored(request, stored, announced),
            // The link delivers all of it, so it needs memory for all of it.
            Comes::Pushed(len) if len > into.len() => {
                let stored = self.store_push(envelope.peer, theirs, len);
                return self.claim_stored(request, stored, announced);
            }
            Comes::Parts(len) if len > into.len() => {
                let stored = self.store_parts(envelope.peer, theirs, len, true);
                return self.claim_stored(request, stored, announced);
            }
            Comes::Pushed(len) | Comes::Parts(len) => len,
            Comes::Asked | Comes::Invited(_) | Comes::Read(_) => 0,
        };
        if into.is_empty() || len == 0 {
            self.send_fin(envelope.peer, theirs);
            if let Some(region) = invited {
                self.close_region(region);
            }
            return self.end_recv(request, envelope);
        }
        if let Comes::Read(address) = body {
            return self.read(request, envelope, theirs, address);
        }
        let id = invited.unwrap_or_else(|| match is_in_parts {
            true => self.new_region_on(request, envelope.peer, Vec::new()),
            false => self.new_region(request, envelope.peer),
        });
        let Some(region) = self.regions.get_mut(id.0) else { return };
        let is_whole = ahead > 0 && ahead == len.min(into.len());
        let knows_keys = is_whole || body == Comes::Invited(id);
        // A sender with more data than wanted would otherwise wait for the keys.
        let fin = fin || (is_whole && ahead < len);
        region.stage = Stage::Matched(Announced { fin, knows_keys, ..announced });
        if region.is_ready() && !knows_keys {
            self.send_keys(id);
        }
        if is_in_parts {
            return self.await_parts(envelope.peer, theirs, id, ahead);
        }
        if ahead > 0 {
            return self.await_push(envelope.peer, theirs, id, ahead);
        }
        self.consider_landed(id);
    }

    pub(crate) fn new_region(&mut self, request: RequestId, from: PeerId) -> RegionId {
        let rails: Vec<RailId> = self.peer(from).map(living_rails).unwrap_or_default();
        self.new_region_on(request, from, rails)
    }

    /// Makes a receive region that is open to chunks over these rails; with no rail, the message arrives in
    /// packets.
    fn new_region_on(&mut self, request: RequestId, from: PeerId, rails: Vec<RailId>) -> RegionId {
        let Some(Request::Recv(recv)) = self.requests.get_mut(request.0) else { return RegionId(0) };
        let into = recv.body(0).0.clone();
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

    /// Returns the next receive region that a rail has to open or close.
    pub(crate) fn next_opening(&mut self, rail: RailId) -> Option<Opening> {
        let opening = self.rails.get_mut(rail.index())?.openings.pop_front()?;
        self.closing -= usize::from(opening.frees_user_memory());
        Some(opening)
    }

    /// Records that a rail has opened a receive region under this key.
    pub(crate) fn opened(&mut self, rail: RailId, region: RegionId, key: Key) {
        match self.regions.get_mut(region.0).filter(|region| region.awaits(rail)) {
            Some(awaiting) => {
                if awaiting.opened(rail, key) {
                    self.send_keys(region);
                }
            }
            // The region was closed, or the rail lost its link, before the rail opened it.
            None => self.open_on(rail, Opening::Close(region, None)),
        }
    }

    /// Sends the keys of a receive region that all rails have opened, in a Cts or in an Rtr.
    pub(crate) fn send_keys(&mut self, id: RegionId) {
        let Some(region) = self.regions.get(id.0) else { return };
        let (from, keys, len) = (region.from, region.keys, region.into.len());
        let frame = match region.stage {
            Stage::Matched(Announced { knows_keys: true, .. }) => return,
            Stage::Matched(Announced { request, len: wanted, prompt, .. }) => {
                Frame::Cts(Cts { request, region: id.0, len: len.min(wanted), keys, prompt })
            }
            Stage::Unmatched => {
                let Some(Request::Recv(recv)) = self.requests.get(region.request.0) else { return };
                let (Context(context), TagMatch::Exact(tag)) = (recv.context, recv.tag) else { return };
                // The receive was cancelled before the Rtr was sent: the peer answers that it does not know
                // the region.
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

    /// Handles a chunk that has arrived in a receive region.
    pub(crate) fn on_landed(
        &mut self,
        from: PeerId,
        id: RegionId,
        offset: u64,
        len: u64,
    ) -> Result<(), Wrong> {
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
        let (request, stage) = (region.request, region.stage);
        self.close_region(id);
        let Stage::Matched(Announced { envelope, request: theirs, fin, .. }) = stage else { return };
        if fin {
            self.send_fin(envelope.peer, theirs);
        }
        self.end_recv(request, envelope);
    }

    pub(crate) fn close_region(&mut self, id: RegionId) {
        let Some(mut region) = self.regions.remove(id.0) else { return };
        let memory = region.buffer.take().map(Arc::new);
        for rail in region.rails() {
            self.open_on(rail, Opening::Close(id, memory.clone()));
        }
        self.give_back(memory);
    }

    /// Called when a rail no longer uses this buffer of the engine; when none does, it is reused.
    pub(crate) fn give_back(&mut self, memory: Option<Arc<Buffer>>) {
        let unused = memory.and_then(|memory| Arc::try_unwrap(memory).ok());
        unused.into_iter().for_each(|buffer| self.spare.give(buffer));
    }

    /// Stops waiting for a rail whose link to a peer is dead.
    pub(crate) fn regions_lose_rail(&mut self, rail: RailId, from: PeerId) {
        let of_peer = self.regions.iter().filter(|(_, region)| region.from == from);
        let waiting: Vec<RegionId> = of_peer.map(|(name, _)| RegionId(name)).collect();
        for id in waiting {
            if self.regions.get_mut(id.0).is_some_and(|region| region.answered(rail)) {
                self.send_keys(id);
            }
        }
    }
}

/// Returns the rails that may carry chunks now or later, including those whose link is not open yet.
pub(crate) fn living_rails(peer: &Peer) -> Vec<RailId> {
    peer.links.iter().filter(|link| link.state != State::Dead).map(|link| link.rail).collect()
}

/// Whether all of a message has arrived in a receive region of the engine.
pub(crate) fn is_here(regions: &Slab<Region>, message: &Envelope, stored: RegionId) -> bool {
    let is_whole = |region: &Region| region.into.len() + region.blocks_len == message.len;
    regions.get(stored.0).is_some_and(|region| region.is_full() && is_whole(region))
}
