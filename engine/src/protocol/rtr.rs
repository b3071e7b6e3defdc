//! Rtr (receiver-initiated rendezvous, P5 section 7): a receive posted before its message is known opens a
//! receive region and sends its keys to the sender, so that the body follows the request to send at once.
//!
//! In a flow that usually gets Rtrs, a send waits a short time for the Rtr (`SendState::Held`) before it
//! sends a plain request. A cancelled receive withdraws its Rtr: the sender answers whether a message
//! already uses it. When the peer is lost, its Rtrs are dropped.

use crate::clock::{Duration, Instant};
use crate::collect::request::{Context, Envelope, Error, Source, TagMatch};
use crate::engine::Engine;
use crate::engine::arrive::Wrong;
use crate::engine::peer::Peer;
use crate::packet::{PeerId, RegionId, RequestId};
use crate::protocol::rendezvous::{Grant, NO_KEY, SendState};
use crate::protocol::rules::{Family, Message, Rules, Submission};
use crate::protocol::{Protocol, Request};
use crate::transfer::link::{IN_FLIGHT_MAX, Link};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use nmad_wire::{Frame, Rtr, Withdraw, Withdrawn};

/// Largest number of Rtrs stored per peer; further ones are dropped, which costs a handshake each.
const RTRS_MAX: usize = 1024;
/// Time that a request to send waits for an Rtr that usually arrives. A later Rtr has cost a system call
/// and an answer; a receiver that posts while the last message is still arriving is within this time.
const HOLD_TIME: Duration = Duration::from_us(5);

pub(crate) const RULES: Rules =
    Rules { protocol: Protocol::Rtr, family: Family::Rendezvous, fits, cost, begin };

/// Rtrs of a peer, and the sends that may use them.
#[derive(Debug, Default)]
pub(crate) struct Invitations {
    /// Receive regions that the peer has opened for messages that are not sent yet.
    rtrs: Vec<Rtr>,
    /// Receive regions that the peer withdrew before their Rtr arrived here, since packets overtake each
    /// other. The latest few; a message that uses a dropped one still finds a closed receive region.
    withdrawn: VecDeque<RegionId>,
    /// Sends that wait for their Cts, by context and sequence number: there may be millions.
    asking: BTreeMap<(u32, u32), u64>,
    /// Sends that wait for an Rtr, and since when.
    held: Vec<(RequestId, Waited)>,
}

/// Time that a large send has waited for an Rtr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    New,
    Seen,
    Since(Instant),
}

impl Invitations {
    /// Whether no Rtr is stored.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rtrs.is_empty()
    }

    /// Whether sends wait for an Rtr.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether an Rtr for this context and tag is stored.
    pub(crate) fn has(&self, context: u32, tag: u64) -> bool {
        self.rtrs.iter().any(|p| p.context == context && p.tag == tag)
    }

    /// Takes the Rtr for this context and tag.
    pub(crate) fn take(&mut self, context: u32, tag: u64) -> Option<Rtr> {
        let index = self.rtrs.iter().position(|p| p.context == context && p.tag == tag)?;
        Some(self.rtrs.swap_remove(index))
    }

    /// Drops the Rtr of this receive region; false if it was used or never stored.
    fn withdraw(&mut self, region: RegionId) -> bool {
        let before = self.rtrs.len();
        self.rtrs.retain(|p| p.region != region.0);
        self.rtrs.len() < before
    }

    /// Records the withdrawal of a receive region whose Rtr has not arrived: the Rtr will be ignored.
    fn record_withdrawn(&mut self, region: RegionId) {
        if self.withdrawn.len() >= IN_FLIGHT_MAX {
            self.withdrawn.pop_front();
        }
        self.withdrawn.push_back(region);
    }

    /// Records that a large send waits for its Cts.
    pub(crate) fn asks(&mut self, envelope: &Envelope, request: RequestId) {
        self.asking.insert((envelope.context.0, envelope.seq), request.0);
    }

    /// Records that a large send does not wait for its Cts any more.
    pub(crate) fn asks_no_more(&mut self, envelope: &Envelope, request: RequestId) {
        let names = (envelope.context.0, envelope.seq);
        if self.asking.get(&names) == Some(&request.0) {
            self.asking.remove(&names);
        }
    }

    /// Returns when the first of the sends that wait for an Rtr stops waiting.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        let until = self.held.iter().map(|(_, waited)| match waited {
            Waited::New | Waited::Seen => None,
            Waited::Since(since) => Some(*since + HOLD_TIME),
        });
        until.min().flatten()
    }
}

fn fits(message: &Message, _: &Peer) -> bool {
    message.is_invited
}

fn cost(message: &Message, peer: &Peer) -> u64 {
    peer.body_ns(message.len)
}

fn begin(engine: &mut Engine, submission: Submission) -> RequestId {
    let Envelope { peer, context, tag, .. } = submission.envelope;
    let rtr = engine.peer_mut(peer).and_then(|peer| peer.states.invitations.take(context.0, tag.0));
    let request = engine.enter_large(submission, Protocol::Rtr, SendState::Asked);
    engine.request_to_send(request, rtr);
    request
}

impl Engine {
    /// Whether the receiver usually sends Rtrs in this flow: then the request to send waits a short time
    /// for one.
    pub(crate) fn expects_rtr(&mut self, submission: &Submission) -> bool {
        let (Envelope { peer, context, .. }, hints) = (submission.envelope, submission.hints);
        let asks_now = hints.unordered || hints.probe.is_some();
        self.peer_mut(peer).is_some_and(|peer| !asks_now && peer.flows.of(context.0).expects_rtr)
    }

    /// Lets a large send wait a short time for an Rtr.
    pub(crate) fn hold_for_rtr(&mut self, envelope: Envelope, request: RequestId) {
        let Some(peer) = self.peer_mut(envelope.peer) else { return };
        peer.states.invitations.asks(&envelope, request);
        peer.states.invitations.held.push((request, Waited::New));
        self.make_ready(envelope.peer);
    }

    /// Sends the requests of large messages that have waited long enough for an Rtr.
    #[cold]
    pub(crate) fn request_overdue(&mut self, now: Instant, id: PeerId) {
        self.request_for_held(id, |waited| match *waited {
            // The time of the first check may be old; that of the next pass is not.
            Waited::New => {
                *waited = Waited::Seen;
                true
            }
            Waited::Seen => {
                *waited = Waited::Since(now);
                true
            }
            Waited::Since(since) => now.since(since) < HOLD_TIME,
        });
    }

    /// Whether a submitted large message waits for its Rtr.
    pub fn hopes_for_rtr(&self) -> bool {
        self.ready.iter().any(|&id| self.peer(id).is_some_and(|peer| peer.states.invitations.holds()))
    }

    /// Sends the requests of all messages that wait for an Rtr, because no thread will poll for it soon.
    pub fn ask_at_once(&mut self) {
        for place in 0..self.ready.len() {
            self.ask_all_held(self.ready[place]);
        }
    }

    /// Sends the requests of all messages to this peer that wait for an Rtr.
    pub(crate) fn ask_all_held(&mut self, id: PeerId) {
        self.request_for_held(id, |_| false);
    }

    /// Sends the requests of the messages for which `waits` is false.
    fn request_for_held(&mut self, id: PeerId, mut waits: impl FnMut(&mut Waited) -> bool) {
        let Some(peer) = self.peer_mut(id) else { return };
        let mut late = Vec::new();
        peer.states.invitations.held.retain_mut(|(request, waited)| {
            let waits = waits(waited);
            if !waits {
                late.push(*request);
            }
            waits
        });
        for request in late {
            let Some(Request::Large(send)) = self.requests.get(request.0) else { continue };
            let envelope = send.envelope;
            if let Some(peer) = self.peer_mut(id) {
                peer.flows.of(envelope.context.0).expects_rtr = false;
                peer.states.invitations.asks_no_more(&envelope, request);
            }
            self.cut_held(request);
            self.request_to_send(request, None);
        }
    }

    /// Sends an Rtr for a posted receive if it pays: the receive has a source and a tag, is the first to
    /// match, has space for a large message, and the last message of the flow was large.
    #[inline]
    pub(crate) fn consider_rtr(&mut self, request: RequestId) {
        let Some(Request::Recv(recv)) = self.requests.get(request.0) else { return };
        let (Source::Peer(from), TagMatch::Exact(_), Some(place)) = (recv.from, recv.tag, recv.posted) else {
            return;
        };
        let (context, room) = (recv.context.0, recv.into.len());
        let Some(peer) = self.peer_mut(from) else { return };
        if room as usize <= peer.way.eager_max || context >= Context::LIMIT {
            return;
        }
        let is_pushed = peer.way.push.is_some_and(|limits| room <= limits.message);
        let pays = !is_pushed
            && !peer.reads(room)
            && peer.flows.of(context).large
            && peer.links.iter().any(Link::is_up);
        if pays && self.receives.matching.is_first(place) {
            self.new_region(request, from);
        }
    }

    /// Handles an Rtr: the peer has opened a receive region for a message that may not be sent yet. The Rtr
    /// is valid if no message of the flow was sent since it was made, or only the request that it answers.
    pub(crate) fn on_rtr(&mut self, from: PeerId, rtr: Rtr) -> Result<(), Wrong> {
        let Some(peer) = self.peer_mut(from) else { return Ok(()) };
        if !peer.can_use(&rtr.keys) {
            return Err(NO_KEY);
        }
        if !peer.states.invitations.withdrawn.contains(&RegionId(rtr.region)) {
            self.keep_rtr(from, rtr);
        }
        Ok(())
    }

    fn keep_rtr(&mut self, from: PeerId, rtr: Rtr) {
        let Some(peer) = self.peer_mut(from) else { return };
        let flow = peer.flows.of(rtr.context);
        if flow.has_unordered {
            return;
        }
        flow.invited = true;
        flow.expects_rtr = true;
        let invitations = &mut peer.states.invitations;
        if rtr.seq == flow.send_next {
            invitations.take(rtr.context, rtr.tag);
            if invitations.rtrs.len() < RTRS_MAX {
                invitations.rtrs.push(rtr);
            }
            return;
        }
        let Some(&request) = invitations.asking.get(&(rtr.context, rtr.seq)) else { return };
        let Some(Request::Large(send)) = self.requests.get(request) else { return };
        let (request, envelope) = (RequestId(request), send.envelope);
        if envelope.tag.0 != rtr.tag {
            return;
        }
        match send.state {
            SendState::Held => {
                let peer = self.peers.get_mut(from);
                let Some(peer) = peer else { return };
                peer.states.invitations.held.retain(|(held, _)| *held != request);
                peer.states.invitations.asks_no_more(&envelope, request);
                self.request_to_send(request, Some(rtr));
            }
            // Memory is open for the whole message there, and will be opened for the rest of this one.
            SendState::Asked if send.carried.is_some() => {}
            SendState::Asked => {
                let len = rtr.len.min(envelope.len);
                self.grant(request, Grant { region: RegionId(rtr.region), len, keys: rtr.keys });
            }
            _ => {}
        }
    }

    /// Withdraws an Rtr because its receive is cancelled.
    pub(crate) fn withdraw(&mut self, peer: PeerId, region: RegionId) {
        if let Some(peer) = self.peer_mut(peer) {
            peer.control(&Frame::Withdraw(Withdraw { region: region.0 }));
        }
        self.make_ready(peer);
    }

    pub(crate) fn on_withdraw(&mut self, from: PeerId, region: u64) {
        let is_used = |request: &Request| match request {
            Request::Large(send) => {
                send.envelope.peer == from && send.grant().is_some_and(|grant| grant.region.0 == region)
            }
            _ => false,
        };
        let used = self.requests.iter().any(|(_, request)| is_used(request));
        let Some(peer) = self.peer_mut(from) else { return };
        if !peer.states.invitations.withdraw(RegionId(region)) && !used {
            peer.states.invitations.record_withdrawn(RegionId(region));
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
        // The message may already be here, behind an earlier one of its flow; its sender has then dropped
        // its state.
        let used = answer.used || peer.flows.of(context).uses(RegionId(answer.region));
        if let (Some(place), true, false) = (posted, withdrawn, used) {
            self.receives.matching.retract(place);
            self.close_region(RegionId(answer.region));
            let error = self.receives.closed.error(Context(context)).unwrap_or(Error::Cancelled);
            self.fail_request(request, error);
        }
    }
}
