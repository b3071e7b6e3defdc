//! Receivers that have posted early and say so (Rtr): the body of a large message follows its request at once
//! (P5 section 7), and what becomes of an Rtr whose receive is cancelled.

use crate::clock::Instant;
use crate::collect::request::{Context, Envelope, Error, Grant, Request, Source, TagMatch};
use crate::engine::Engine;
use crate::engine::peer::{PATIENCE, Patience};
use crate::packet::{PeerId, RegionId, RequestId};
use crate::protocol::rendezvous::NO_KEY;
use crate::transfer::link::Link;
use alloc::vec::Vec;
use nmad_wire::{Frame, Rtr, Withdraw, Withdrawn};

/// Rtrs that one peer may have here; more are not kept, and cost no more than a handshake.
const RTRS_MAX: usize = 1024;

impl Engine {
    /// Whether the receiver usually invites messages of this flow: then the request waits a little for
    /// the Rtr, and is on the list of those that do.
    pub(crate) fn expects_rtr(&mut self, request: RequestId) -> bool {
        let Some(Request::Large(outgoing)) = self.requests.get(request.0) else { return false };
        let (Envelope { peer, context, seq, .. }, unordered) = (outgoing.envelope, outgoing.hints.unordered);
        let Some(peer) = self.peer_mut(peer) else { return false };
        let expects = !unordered && peer.flows.of(context.0).expects_rtr;
        if expects {
            peer.requested.insert((context.0, seq), request.0);
            peer.held.push((request, Patience::New));
            let id = peer.id;
            self.make_ready(id);
        }
        expects
    }

    /// Announces those large messages that have waited long enough for an Rtr.
    #[cold]
    pub(crate) fn release_held(&mut self, now: Instant, id: PeerId) {
        self.ask_for_held(id, |patience| match *patience {
            // The time at first sight may be old; the next turn's is not.
            Patience::New => {
                *patience = Patience::Seen;
                true
            }
            Patience::Seen => {
                *patience = Patience::Since(now);
                true
            }
            Patience::Since(since) => now.since(since) < PATIENCE,
        });
    }

    /// Whether a large message that was submitted waits for its Rtr.
    pub fn hopes_for_rtr(&self) -> bool {
        self.ready.iter().any(|&id| self.peer(id).is_some_and(|peer| !peer.held.is_empty()))
    }

    /// Large messages that wait for an Rtr ask now: nobody will look for it soon.
    pub fn ask_at_once(&mut self) {
        for place in 0..self.ready.len() {
            self.ask_for_held(self.ready[place], |_| false);
        }
    }

    /// Announces those large messages that wait for an Rtr no longer.
    pub(crate) fn ask_for_held(&mut self, id: PeerId, mut waits: impl FnMut(&mut Patience) -> bool) {
        let Some(peer) = self.peer_mut(id) else { return };
        let mut late = Vec::new();
        peer.held.retain_mut(|(request, patience)| {
            let waits = waits(patience);
            if !waits {
                late.push(*request);
            }
            waits
        });
        for request in late {
            let Some(Request::Large(outgoing)) = self.requests.get(request.0) else { continue };
            let envelope = outgoing.envelope;
            if let Some(peer) = self.peer_mut(id) {
                peer.flows.of(envelope.context.0).expects_rtr = false;
                peer.asks_no_more(&envelope, request);
            }
            self.request_to_send(request, None);
        }
    }

    /// Whether it pays to tell the peer that this receive is posted: it names peer and tag, is first in
    /// line, has room for a large message, and the last message of the flow was large.
    #[inline]
    pub(crate) fn consider_rtr(&mut self, request: RequestId) {
        let Some(Request::Recv(recv)) = self.requests.get(request.0) else { return };
        let (Source::Peer(from), TagMatch::Exact(_), Some(place)) = (recv.from, recv.tag, recv.posted) else {
            return;
        };
        let (context, room) = (recv.context.0, recv.into.len());
        let Some(peer) = self.peer_mut(from) else { return };
        if room as usize <= peer.eager_max || context >= Context::LIMIT {
            return;
        }
        let pushed = peer.may_push.is_some_and(|(longest, _)| room <= longest);
        let pays = !pushed
            && !peer.reads(room)
            && peer.flows.of(context).large
            && peer.links.iter().any(Link::is_up);
        if pays && self.matching.is_first(place) {
            self.new_region(request, from);
        }
    }

    /// The peer has a receive region open for a message that we have perhaps not sent yet. An Rtr is of use
    /// if nothing of the flow went since it was made, or just the request that it answers.
    pub(crate) fn on_rtr(&mut self, from: PeerId, rtr: Rtr) -> Result<(), &'static str> {
        let Some(peer) = self.peer_mut(from) else { return Ok(()) };
        if !peer.can_use(&rtr.keys) {
            return Err(NO_KEY);
        }
        if !peer.asked_back.contains(&RegionId(rtr.region)) {
            self.keep_rtr(from, rtr);
        }
        Ok(())
    }

    fn keep_rtr(&mut self, from: PeerId, rtr: Rtr) {
        let Some(peer) = self.peer_mut(from) else { return };
        let flow = peer.flows.of(rtr.context);
        if flow.relaxed {
            return;
        }
        flow.invited = true;
        flow.expects_rtr = true;
        if rtr.seq == flow.send_next {
            peer.take_rtr(rtr.context, rtr.tag);
            if peer.rtrs.len() < RTRS_MAX {
                peer.rtrs.push(rtr);
            }
            return;
        }
        let Some(&request) = peer.requested.get(&(rtr.context, rtr.seq)) else { return };
        let Some(Request::Large(outgoing)) = self.requests.get(request) else { return };
        let Some(peer) = self.peers.get_mut(from.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        if outgoing.envelope.tag.0 == rtr.tag && outgoing.grant.is_none() {
            let request = RequestId(request);
            if let Some(index) = peer.held.iter().position(|(held, _)| *held == request) {
                peer.held.swap_remove(index);
                peer.asks_no_more(&outgoing.envelope, request);
                return self.request_to_send(request, Some(rtr));
            }
            let len = rtr.len.min(outgoing.envelope.len);
            let grant = Grant { region: RegionId(rtr.region), len, keys: rtr.keys };
            self.grant(request, grant);
        }
    }

    /// Asks for an Rtr back, because its receive is cancelled.
    pub(crate) fn withdraw(&mut self, peer: PeerId, region: RegionId) {
        if let Some(peer) = self.peer_mut(peer) {
            peer.control(&Frame::Withdraw(Withdraw { region: region.0 }));
        }
        self.make_ready(peer);
    }

    pub(crate) fn on_withdraw(&mut self, from: PeerId, region: u64) {
        let is_used = |request: &Request| match request {
            Request::Large(o) => o.envelope.peer == from && o.grant.is_some_and(|g| g.region.0 == region),
            _ => false,
        };
        let used = self.requests.iter().any(|(_, request)| is_used(request));
        let Some(peer) = self.peer_mut(from) else { return };
        if !peer.drop_rtr(RegionId(region)) && !used {
            peer.expect_no_rtr(RegionId(region));
        }
        peer.control(&Frame::Withdrawn(Withdrawn { region, used }));
        self.make_ready(from);
    }

    pub(crate) fn on_withdrawn(&mut self, from: PeerId, answer: Withdrawn) {
        let Some(region) = self.regions.get(answer.region).filter(|l| l.from == from) else { return };
        let request = region.request;
        let Some(Request::Recv(recv)) = self.requests.get(request.0) else { return };
        let (posted, withdrawn, context) = (recv.posted, recv.withdrawn, recv.context.0);
        let Some(peer) = self.peer_mut(from) else { return };
        // The message may be here already, behind an earlier one of its flow; its sender knows it no more.
        let used = answer.used || peer.flows.of(context).uses(RegionId(answer.region));
        if let (Some(place), true, false) = (posted, withdrawn, used) {
            self.matching.retract(place);
            self.close_region(RegionId(answer.region));
            self.fail_request(request, Error::Cancelled);
        }
    }
}
