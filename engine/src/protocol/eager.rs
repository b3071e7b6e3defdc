//! Eager (`Protocol::Inject`, `Eager`, `EagerZcopy`): a message in a packet, sent without an answer of its
//! receiver. Credit bounds the memory of unexpected messages.
//!
//! If its rail is idle, a message is sent in the call that submits it: injected by a driver that copies it
//! without a system call, or with its own system call. Any other becomes an entry of the window. When a
//! link dies its packet is replayed over another one (`engine::fail`), and the state here does not
//! change; when the peer is lost the request ends with [`crate::Error::PeerLost`].

use crate::clock::Instant;
use crate::collect::matching::Arrived;
use crate::collect::request::{Context, Envelope, Hints, Tag};
use crate::collect::sequence::{Early, Place};
use crate::collect::window::Entry;
use crate::engine::Engine;
use crate::engine::arrive::Wrong;
use crate::engine::depart::{Load, book};
use crate::engine::peer::Peer;
use crate::memory::Segments;
use crate::packet::{PeerId, RequestId};
use crate::profile::sample::Method;
use crate::protocol::leaving::{Leaving, Submitted, To};
use crate::protocol::rules::{Family, Message, Rules, Submission};
use crate::protocol::{Protocol, Recv, Request};
use crate::transfer::driver::Sent;
use crate::transfer::link::Link;
use crate::transfer::rail::Rail;
use crate::transfer::retention::Cargo;
use alloc::vec::Vec;
use nmad_wire::{Eager, flags};

pub(crate) const RULES: Rules = Rules { protocol: Protocol::Eager, family: Family::Eager, fits, cost, begin };

/// State of an eager send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EagerSend {
    pub(crate) envelope: Envelope,
    /// Synchronous: the request ends only when the receiver has matched the message.
    pub(crate) wants_fin: bool,
    pub(crate) has_fin: bool,
    /// Entries of the window, or of packets, that refer to its memory: one per part.
    pub(crate) waiting: u32,
}

impl EagerSend {
    pub(crate) fn new(envelope: Envelope, wants_fin: bool) -> Self {
        EagerSend { envelope, wants_fin, has_fin: false, waiting: 1 }
    }

    /// Whether the memory is free and, if it is synchronous, the receiver has matched it.
    fn is_over(&self) -> bool {
        self.waiting == 0 && (self.has_fin || !self.wants_fin)
    }
}

fn fits(message: &Message, peer: &Peer) -> bool {
    let is_other = message.hints.probe.is_some_and(|method| method == Method::Read || method.is_large());
    !is_other && message.len as usize <= peer.longest_eager() && peer.credit.has(message.len)
}

fn cost(message: &Message, peer: &Peer) -> u64 {
    peer.used().map(|(_, link)| link.forecast.eager_ns(message.len)).min().unwrap_or(0)
}

/// Puts the message into the window.
fn begin(engine: &mut Engine, submission: Submission) -> RequestId {
    let Submission { envelope, data, hints } = submission;
    let request = Request::Eager(EagerSend::new(envelope, hints.synchronous));
    let request = RequestId(engine.requests.insert(request));
    let head = Eager {
        flags: flags::of(hints.synchronous, hints.unordered, false),
        context: envelope.context.0,
        tag: envelope.tag.0,
        seq: envelope.seq,
        len: envelope.len as u32,
        request: request.0,
    };
    let feed = engine.config.feed;
    let Some(peer) = engine.peer_mut(envelope.peer) else { return request };
    peer.spend_eager(envelope.len, hints);
    let rail = peer.wished(hints.rail);
    peer.window.submit(rail, Entry::eager(head, data, request, &hints));
    // An entry that joins others changes nothing for busy rails.
    let is_more = peer.window.prefers_latency() || feed.feeds_busy(peer.window.backlog());
    if is_more || !peer.is_ready {
        engine.make_ready(envelope.peer);
    }
    request
}

/// Whether data of an eager message is cheaper to send in place than to copy.
pub(crate) fn stays_in_place(peer: &Peer, rails: &[Rail], len: u64) -> bool {
    let gathers =
        |link: &Link| rails[link.rail.index()].limits.gather > 0 && len as usize >= link.in_place_min;
    peer.used().any(|(_, link)| gathers(link))
}

impl Peer {
    /// Charges an eager message.
    #[inline]
    pub(crate) fn spend_eager(&mut self, len: u64, hints: Hints) {
        self.credit.spend_known(len);
        if len >= self.way.at_once_below {
            self.note_eager(len, hints);
        }
    }
}

impl Engine {
    /// Books a message that was sent completely and is not kept, if no receipt is recorded; false:
    /// `Engine::departed` books the result.
    #[inline(always)]
    pub(crate) fn has_left(
        &mut self,
        leaving: &Leaving,
        sent: Sent,
        to: PeerId,
        len: u64,
        clock: &mut dyn FnMut() -> Instant,
    ) -> bool {
        if sent != Sent::Done || self.observers.receipts.is_some() {
            return false;
        }
        match leaving.plan.protocol {
            Protocol::Inject => self.injected(leaving, to, len),
            Protocol::Eager if self.peer(to).is_some_and(|peer| !peer.way.keeps) => {
                self.eager_sent(leaving, to, len, clock(), false);
            }
            _ => return false,
        }
        true
    }

    /// Books an injected message, which occupies the rail for no predicted time.
    #[inline(always)]
    pub(crate) fn injected(&mut self, leaving: &Leaving, to: PeerId, len: u64) {
        let Engine { peers, rails, .. } = self;
        let Some(peer) = peers.get_mut(to) else { return };
        let link = &mut peer.links[usize::from(leaving.plan.place)];
        let at = &mut rails[link.rail.index()];
        let len = Eager::ALONE_LEN as u64 + len;
        book(Instant::default(), to, link, at, Load { entries: Some(1), len, busy: 0, kept: None });
    }

    /// Books a message that was sent with its own system call, which ended at `until`.
    #[inline(always)]
    fn eager_sent(&mut self, leaving: &Leaving, to: PeerId, len: u64, until: Instant, is_kept: bool) {
        self.book_deferred_ack();
        let Engine { peers, rails, other_cores, .. } = self;
        let Some(peer) = peers.get_mut(to) else { return };
        other_cores.ask(&peer.way, len);
        let link = &mut peer.links[usize::from(leaving.plan.place)];
        let at = &mut rails[link.rail.index()];
        let len = Eager::ALONE_LEN as u64 + len;
        // With several rails the time of each rail is measured, including the call.
        let held_at = if leaving.began == Instant::default() { until } else { leaving.began };
        let kept = is_kept.then(|| (Cargo::Packet(None), Vec::new()));
        book(held_at, to, link, at, Load { entries: Some(1), len, busy: len, kept });
        // The time of the call does not count as the cost of posting: otherwise the rail would be busy for
        // as long again, and an answer to a message that arrives meanwhile would use another rail.
        at.posted(None, until);
        self.note_number(to, leaving.number);
    }

    /// Books a message that was sent with its own system call, and keeps it if it may have to be sent again.
    pub(crate) fn eager_departed(
        &mut self,
        leaving: &Leaving,
        sent: Sent,
        to: &To,
        data: &Segments,
        until: Instant,
    ) -> Submitted {
        let keeps = self.peer(to.0).is_some_and(|peer| peer.way.keeps);
        self.eager_sent(leaving, to.0, data.len(), until, sent == Sent::Posted || keeps);
        if keeps
            && sent == Sent::Done
            && let Some(peer) = self.peers.get_mut(to.0)
        {
            if data.len() >= peer.way.at_once_below {
                peer.note_eager(data.len(), Hints::default());
            }
            let mut packet = self.buffers.pop().unwrap_or_default();
            packet.in_place.clear();
            packet.bytes.clear();
            data.append_behind(&leaving.head(to, data.len()), &mut packet.bytes);
            let link = &mut peer.links[usize::from(leaving.plan.place)];
            link.tx.sent(leaving.number, Some(packet), true);
            link.recheck_timers();
            self.rests_until = Instant::default();
        }
        Submitted::Ended(leaving.seq)
    }

    /// Records that an entry of an eager message no longer refers to its sender's memory.
    #[inline]
    pub(crate) fn eager_left(&mut self, request: RequestId) {
        if let Some(Request::Eager(send)) = self.requests.get_mut(request.0) {
            send.waiting = send.waiting.saturating_sub(1);
            let (is_over, envelope) = (send.is_over(), send.envelope);
            if is_over {
                self.complete(request, Ok(envelope));
            }
        }
    }

    /// Handles the Fin for a synchronous message that the receiver has matched.
    pub(crate) fn eager_matched(&mut self, request: RequestId) -> Result<(), Wrong> {
        let Some(Request::Eager(send)) = self.requests.get_mut(request.0) else { return Ok(()) };
        if !send.wants_fin {
            return Err("Fin for a message that does not wait for it");
        }
        send.has_fin = true;
        let (is_over, envelope) = (send.is_over(), send.envelope);
        if is_over {
            self.complete(request, Ok(envelope));
        }
        Ok(())
    }

    /// Handles a small message: charges it, and delivers it to the matching receive. Returns whether
    /// [`Engine::after_packet`] has something to do.
    #[inline(always)]
    pub(crate) fn on_eager(&mut self, from: PeerId, eager: Eager, data: &[u8]) -> Result<bool, Wrong> {
        let Engine { peers, receives, .. } = self;
        let Some(peer) = peers.get_mut(from) else {
            return Ok(false);
        };
        let (context, tag) = (Context(eager.context), Tag(eager.tag));
        let envelope = Envelope { peer: from, context, tag, len: data.len() as u64, seq: eager.seq };
        if !peer.credit.received(envelope.len) {
            return Err("more eager data than it was granted");
        }
        let is_due = peer.owes_news();
        let flow = peer.flows.of(eager.context);
        flow.large = false;
        if eager.flags & flags::UNORDERED == 0 {
            match flow.place(eager.seq) {
                Place::Next => flow.recv_next = flow.recv_next.wrapping_add(1),
                Place::Past => return Err("sequence number of an earlier message"),
                Place::Early => {
                    let body = Arrived::copy(data);
                    self.park(Early { envelope, body, request: eager.request })?;
                    return Ok(is_due);
                }
            }
        }
        let is_followed = flow.has_early();
        if receives.expected.take(&envelope, data) {
            peer.credit.consume(envelope.len);
            if eager.request != 0 {
                self.send_fin(from, eager.request);
            }
        } else {
            self.match_eager(envelope, data, eager.request);
        }
        if is_followed {
            self.continue_flow(from, eager.context);
        }
        Ok(is_due)
    }

    /// Delivers a small message to the matching receive, or keeps it.
    #[inline(always)]
    fn match_eager(&mut self, envelope: Envelope, data: &[u8], theirs: u64) {
        self.post_expected_for(&envelope);
        match self.receives.matching.arrive(&envelope) {
            Some(request) => self.deliver(request, envelope, data, theirs),
            None => self.keep_unexpected(envelope, data, theirs),
        }
    }

    /// Keeps a small message that matches no receive.
    #[inline(never)]
    fn keep_unexpected(&mut self, envelope: Envelope, data: &[u8], theirs: u64) {
        self.receives.matching.keep(envelope, Arrived::store(data, &mut self.spare), theirs);
    }

    /// Delivers a small message to the receive that it matches.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, request: RequestId, envelope: Envelope, data: &[u8], theirs: u64) {
        let Engine { peers, requests, ended, untold, observers, .. } = self;
        if theirs == 0
            && observers.receipts.is_none()
            && let Some(place) = requests.get_mut(request.0)
            && is_plain(place).is_some_and(|recv| recv.into.write_whole(data))
        {
            // Skip the drop: the receive owns no memory.
            core::mem::forget(core::mem::replace(place, Request::Ended(Ok(envelope))));
            if let Some(peer) = peers.get_mut(envelope.peer) {
                peer.credit.consume(envelope.len);
            }
            *untold += 1;
            return ended.push(request);
        }
        self.deliver_any(request, envelope, data, theirs);
    }

    /// Delivers a small message to any receive: one in several pieces, with an Rtr, or too short.
    #[inline(never)]
    fn deliver_any(&mut self, request: RequestId, envelope: Envelope, data: &[u8], theirs: u64) {
        let Some(Request::Recv(recv)) = self.requests.get(request.0) else { return };
        recv.into.write(0, data);
        let (region, message) = (recv.region, recv.message);
        if let Some(region) = region {
            self.close_region(region);
        }
        if let Some(message) = message {
            self.first_piece_matched(message, &envelope);
        }
        if let Some(peer) = self.peer_mut(envelope.peer) {
            peer.credit.consume(envelope.len);
        }
        if theirs != 0 {
            self.send_fin(envelope.peer, theirs);
        }
        self.end_recv(request, envelope);
    }
}

/// Returns the receive if it has no receive region and is not part of an incremental message.
#[inline(always)]
fn is_plain(request: &Request) -> Option<&Recv> {
    match request {
        Request::Recv(recv) if recv.region.is_none() && recv.message.is_none() => Some(recv),
        _ => None,
    }
}
