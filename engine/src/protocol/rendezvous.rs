//! Rendezvous (Rts, Cts, chunks, Fin): the receiver is asked where a large message goes. Also what all
//! protocols of large messages share: the state of their sends ([`LargeSend`]) and the request to send.
//!
//! | sender | moved by | to |
//! |---|---|---|
//! | `Held` ([`super::rtr`]) | an Rtr, or patience is over | `Granted`, or `Asked` |
//! | `Asked` | Cts | `Granted` |
//! | `Readable` ([`super::read`]) | Fin; Cts of a receiver that cannot read | `Landed`; `Granted` |
//! | `Ahead` ([`super::push`]) | Cts for the rest | `Granted` |
//! | `Granted` | Fin | `Landed` |
//!
//! When a link dies, chunks that it held go back to their body (`Granted` stays), and the request to send
//! is replayed; when the peer is gone the request ends with [`crate::Error::PeerLost`]. The receiver's
//! region waits for no rail whose link is dead.

use crate::clock::Instant;
use crate::collect::request::{Envelope, Error, Hints};
use crate::collect::window::Entry;
use crate::engine::Engine;
use crate::engine::arrive::Wrong;
use crate::engine::peer::Peer;
use crate::memory::{Buffer, Segments};
use crate::packet::{Key, PeerId, RegionId, RequestId};
use crate::protocol::carried::Carried;
use crate::protocol::rules::{Family, Message, Rules, Submission};
use crate::protocol::{Protocol, Request};
use crate::schedule::body::Body;
use crate::transfer::link::Link;
use alloc::boxed::Box;
use alloc::vec::Vec;
use nmad_wire::{Cts, Fin, Frame, Keys, Rtr, Rts, flags};

/// A grant that nobody can use.
pub(crate) const NO_KEY: &str = "region without a key for any rail that is left";

pub(crate) const RULES: Rules =
    Rules { protocol: Protocol::Rendezvous, family: Family::Rendezvous, fits: |_, _| true, cost, begin };

/// State of a large send.
#[derive(Debug)]
pub(crate) struct LargeSend {
    pub(crate) envelope: Envelope,
    /// What protocols transfer: the message, or what is left of it without the blocks that travel with its
    /// request to send.
    pub(crate) data: Segments,
    /// The blocks that travel with its request to send.
    pub(crate) carried: Option<Box<Carried>>,
    pub(crate) hints: Hints,
    /// The protocol by which it goes, or by which it began.
    pub(crate) protocol: Protocol,
    pub(crate) state: SendState,
    /// The receiver will say when it has everything; until then chunks may have to be sent again.
    pub(crate) wants_fin: bool,
    /// Chunks that a rail holds; user memory is in use.
    pub(crate) at_rails: u32,
    /// Bytes that rails reported as sent.
    pub(crate) sent: u64,
    /// Whether it ends before its receiver has it.
    pub(crate) kept: Kept,
    /// Granted bytes of it are among the bodies of its peer.
    pub(crate) has_body: bool,
    pub(crate) timing: Timing,
}

/// How far a large send is.
#[derive(Debug, Clone, Copy)]
// The state is part of a send, which is in a box of its own.
#[allow(clippy::large_enum_variant)]
pub(crate) enum SendState {
    /// It waits a little for an invitation that usually comes.
    Held,
    /// The receiver is asked, and nothing goes before it answers.
    Asked,
    /// The receiver may read it from this address.
    Readable { address: u64 },
    /// This number of its first bytes go ahead of any answer, zero no more once they are granted.
    Ahead { len: u64 },
    /// The receiver has said where it goes; the first `ahead` bytes went before that.
    Granted { grant: Grant, ahead: u64 },
    /// The receiver has everything that it wants. Bytes that were announced as ahead are still sent.
    Landed { ahead: u64 },
}

/// What became of the wish to end a large send before its receiver has it: its program has cancelled it, or
/// waits for it in vain.
#[derive(Debug)]
pub(crate) enum Kept {
    /// There is none.
    No,
    /// Its memory is still in use elsewhere.
    Wanted,
    /// Its data lies here; whether the end of its request was reported, and whether it is a blocking send
    /// that has ended early ([`super::early`]).
    Here { buffer: Buffer, is_told: bool, is_early: bool },
}

impl Kept {
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Kept::Here { .. })
    }

    /// Whether the request has ended for the application, which does not know it yet.
    #[inline]
    pub(crate) fn is_untold(&self) -> bool {
        matches!(self, Kept::Here { is_told: false, .. })
    }

    /// Whether the end of the request was reported.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        matches!(self, Kept::Here { is_told: true, .. })
    }

    /// Whether the receiver is asked for the memory of a send in this state.
    #[inline]
    pub(crate) fn is_reclaimed(&self, state: SendState) -> bool {
        matches!((self, state), (Kept::Wanted, SendState::Readable { .. }))
    }
}

/// Observations of a large send.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    /// The receiver says when it has everything for a measurement, which the send does not wait for.
    pub(crate) is_timed: bool,
    /// When its request to send left, where that is known.
    pub(crate) asked_at: Option<Instant>,
    /// How long it waited for the answer, beyond a handshake; none: it was not asked, or that says nothing.
    pub(crate) answer_ns: Option<u64>,
    /// When it was predicted to have arrived; zero before it is shared out, or where nobody says that it has.
    pub(crate) due: Instant,
    /// When the strategy has shared it out, how many bytes, and among how many rails.
    pub(crate) shared: Option<(Instant, u64, usize)>,
}

/// The receiver's permission to send the body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) region: RegionId,
    pub(crate) len: u64,
    pub(crate) keys: Keys,
}

impl Grant {
    /// Returns where chunks go over the peer's rail of this number; `None` if the peer gave no key for it.
    pub(crate) fn target(&self, remote: u8) -> Option<(RegionId, Key)> {
        Some((self.region, Key(self.keys.get(remote)?)))
    }
}

impl LargeSend {
    /// A send of which nothing has gone.
    pub(crate) fn new(
        protocol: Protocol,
        state: SendState,
        envelope: Envelope,
        data: Segments,
        hints: Hints,
    ) -> Self {
        LargeSend {
            envelope,
            data,
            carried: None,
            hints,
            protocol,
            state,
            wants_fin: false,
            at_rails: 0,
            sent: 0,
            kept: Kept::No,
            has_body: false,
            timing: Timing::default(),
        }
    }

    /// The receiver's permission, if it has come.
    #[inline]
    pub(crate) fn grant(&self) -> Option<Grant> {
        if let SendState::Granted { grant, .. } = self.state { Some(grant) } else { None }
    }

    /// Bytes that go ahead of any answer, or went so.
    #[inline]
    pub(crate) fn ahead(&self) -> u64 {
        match self.state {
            SendState::Ahead { len: ahead }
            | SendState::Granted { ahead, .. }
            | SendState::Landed { ahead } => ahead,
            SendState::Held | SendState::Asked | SendState::Readable { .. } => 0,
        }
    }

    /// The receiver has everything that it wants.
    pub(crate) fn has_landed(&self) -> bool {
        matches!(self.state, SendState::Landed { .. })
    }

    /// Whether no rail holds a chunk of it and everything has arrived or, where nothing has to be kept, has
    /// left.
    fn is_over(&self) -> bool {
        let enough = match self.state {
            SendState::Granted { grant, ahead } => grant.len.max(ahead),
            // Bytes that were announced as ahead are sent, whatever becomes of them.
            SendState::Landed { ahead } => ahead,
            _ => self.data.len(),
        };
        (self.has_landed() || !self.wants_fin) && self.sent >= enough && self.at_rails == 0
    }
}

fn cost(message: &Message, peer: &Peer) -> u64 {
    let handshake = |link: &Link| link.forecast.profile().handshake_ns();
    let handshake_ns = peer.used().map(|(_, link)| handshake(link)).min().unwrap_or(0);
    handshake_ns.saturating_add(peer.body_ns(message.len))
}

fn begin(engine: &mut Engine, submission: Submission) -> RequestId {
    let submission = match engine.begin_cut(submission) {
        Ok(request) => return request,
        Err(whole) => whole,
    };
    let state = if engine.expects_rtr(&submission) { SendState::Held } else { SendState::Asked };
    engine.begin_large(submission, Protocol::Rendezvous, state)
}

impl Peer {
    /// Predicted time of the body of a large message over all rails, in nanoseconds: its bytes at the sum of
    /// their bandwidths, after the start of the fastest.
    pub(crate) fn body_ns(&self, len: u64) -> u64 {
        let forecasts = || self.used().map(|(_, link)| &link.forecast);
        let alone = forecasts().map(|forecast| forecast.body_ns(len)).min().unwrap_or(0);
        let start = forecasts().map(|forecast| forecast.body_ns(0)).min().unwrap_or(0);
        let bandwidth: f64 = forecasts().map(|forecast| forecast.bandwidth()).sum();
        alone.min(start.saturating_add((len as f64 / bandwidth.max(f64::MIN_POSITIVE)) as u64))
    }
}

impl Engine {
    /// Begins a large send in this state: its request to send goes into the window, unless it waits for an
    /// invitation.
    pub(crate) fn begin_large(
        &mut self,
        submission: Submission,
        protocol: Protocol,
        state: SendState,
    ) -> RequestId {
        let envelope = submission.envelope;
        let request = self.enter_large(submission, protocol, state);
        match state {
            SendState::Held => self.hold_for_rtr(envelope, request),
            _ => self.request_to_send(request, None),
        }
        request
    }

    /// Enters a large send in this state.
    pub(crate) fn enter_large(
        &mut self,
        submission: Submission,
        protocol: Protocol,
        state: SendState,
    ) -> RequestId {
        let Submission { envelope, data, hints } = submission;
        self.note_asked(&envelope, hints);
        let peer = self.peer(envelope.peer);
        let keeps = peer.is_some_and(|peer| peer.way.keeps);
        let is_timed = peer.is_some_and(|peer| peer.times_large(hints));
        let mut send = LargeSend::new(protocol, state, envelope, data, hints);
        send.wants_fin = match state {
            SendState::Readable { .. } => true,
            // Bytes that go ahead say nothing about the receiver.
            SendState::Ahead { .. } => keeps || hints.synchronous,
            _ => keeps,
        };
        send.timing.is_timed = is_timed;
        RequestId(self.requests.insert(Request::Large(Box::new(send))))
    }

    /// Puts the request to send of a large message into the window; with an Rtr its body follows at once.
    pub(crate) fn request_to_send(&mut self, request: RequestId, rtr: Option<Rtr>) {
        let Some(Request::Large(send)) = self.requests.get_mut(request.0) else { return };
        if let SendState::Held = send.state {
            send.state = SendState::Asked;
        }
        let (envelope, hints, state) = (send.envelope, send.hints, send.state);
        let (way, pushed, address) = match state {
            SendState::Ahead { len } => (flags::PUSHED, len, 0),
            SendState::Readable { address } => (flags::READ, 0, address),
            _ => (0, 0, 0),
        };
        let blocks = if send.carried.is_some() { flags::BLOCKS } else { 0 };
        let wants_fin = send.wants_fin || send.timing.is_timed;
        let rts = Rts {
            flags: flags::of(wants_fin, hints.unordered, rtr.is_some()) | way | blocks,
            context: envelope.context.0,
            tag: envelope.tag.0,
            seq: envelope.seq,
            len: envelope.len,
            request: request.0,
            region: rtr.map_or(0, |p| p.region),
            pushed,
            address,
        };
        if rtr.is_some() {
            send.protocol = Protocol::Rtr;
        }
        let mut frame = Vec::with_capacity(Rts::MAX_LEN);
        rts.encode(&mut frame);
        let make = |frame| Entry::rts(frame, Some(request), &hints);
        let entry = match &mut send.carried {
            None => make(frame),
            Some(carried) => carried.enter(frame, make),
        };
        let carried = send.blocks();
        let Some(peer) = self.peer_mut(envelope.peer) else { return };
        peer.flows.requested += 1;
        peer.flows.add_blocks(carried);
        if address > 0 {
            peer.lateness.offers_to_read();
        }
        let rail = peer.wished(hints.rail);
        peer.window.submit(rail, entry);
        if !hints.unordered && rtr.is_none() && matches!(state, SendState::Asked) {
            peer.states.invitations.asks(&envelope, request);
        }
        self.make_ready(envelope.peer);
        if let Some(Rtr { region, len, keys, .. }) = rtr {
            self.grant(request, Grant { region: RegionId(region), len: len.min(envelope.len), keys });
        }
    }

    /// The receiver's receive region is known: the body may go.
    pub(crate) fn grant(&mut self, request: RequestId, grant: Grant) {
        let Some(Request::Large(send)) = self.requests.get_mut(request.0) else { return };
        let Hints { priority, rail, strategy, .. } = send.hints;
        let (envelope, to) = (send.envelope, send.envelope.peer);
        let ahead = send.ahead();
        send.state = SendState::Granted { grant, ahead };
        send.sent = send.sent.min(ahead);
        let had_body = core::mem::replace(&mut send.has_body, grant.len > ahead);
        let Some(peer) = self.peer_mut(to) else { return };
        peer.states.invitations.asks_no_more(&envelope, request);
        if had_body {
            peer.bodies.retain(|body| body.request != request || body.is_pushed());
        }
        if grant.len <= ahead {
            return self.consider_sent(request);
        }
        let rail = peer.wished(rail);
        peer.add_body(Body::new(request, (priority, strategy), (ahead, grant.len - ahead), rail));
        self.make_ready(to);
    }

    pub(crate) fn on_cts(&mut self, now: Instant, from: PeerId, cts: Cts) -> Result<(), Wrong> {
        let Some(Request::Large(send)) = self.requests.get_mut(cts.request) else { return Ok(()) };
        if send.envelope.peer != from || cts.len > send.data.len() || send.has_blocks_in_window() {
            return Err("Cts for a request that is not its own");
        }
        // The answer to a request that an Rtr has meanwhile granted; the same receive region.
        if send.has_landed() || send.grant().is_some_and(|grant| grant.region.0 == cts.region) {
            return Ok(());
        }
        if let SendState::Readable { .. } = send.state {
            send.protocol = Protocol::Rendezvous;
            self.no_more_reads(from);
        }
        let grant = Grant { region: RegionId(cts.region), len: cts.len, keys: cts.keys };
        if !self.peer(from).is_some_and(|peer| peer.can_use(&grant.keys)) {
            return Err(NO_KEY);
        }
        self.note_answer(now, RequestId(cts.request), cts.prompt);
        self.grant(RequestId(cts.request), grant);
        Ok(())
    }

    pub(crate) fn on_fin(&mut self, now: Instant, from: PeerId, fin: Fin) -> Result<(), Wrong> {
        let request = RequestId(fin.request);
        self.timed_large(now, from, fin.request);
        self.note_read(now, request, fin.prompt);
        match self.requests.get_mut(fin.request) {
            Some(Request::Eager(send)) if send.envelope.peer == from => self.eager_matched(request),
            Some(Request::Large(send)) if send.envelope.peer == from && send.has_blocks_in_window() => {
                Err("Fin for a request that has not been sent")
            }
            Some(Request::Large(send)) if send.envelope.peer == from => {
                send.state = SendState::Landed { ahead: send.ahead() };
                let timing = core::mem::take(&mut send.timing);
                let (strategy, envelope) = (send.hints.strategy, send.envelope);
                let has_body = core::mem::take(&mut send.has_body);
                if let Some(peer) = self.peer_mut(from) {
                    if let Some((at, len, rails)) = timing.shared {
                        peer.strategies.of(strategy).carried(len, rails, now.since(at));
                    }
                    if has_body {
                        peer.bodies.retain(|body| body.request != request || body.is_pushed());
                    }
                    peer.states.invitations.asks_no_more(&envelope, request);
                }
                self.note_end(now, from, timing, (envelope.len, fin.prompt));
                if let Some(shared) = timing.shared {
                    self.note_carried(now, from, timing.due, shared);
                }
                self.consider_sent(request);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends a large send that is over.
    pub(crate) fn consider_sent(&mut self, request: RequestId) {
        let Some(Request::Large(send)) = self.requests.get(request.0) else { return };
        if send.is_over() {
            let envelope = send.envelope;
            self.complete(request, Ok(envelope));
        }
    }

    /// A rail has sent a chunk.
    pub(crate) fn on_chunk_sent(&mut self, request: RequestId, region: RegionId, len: u64) {
        if let Some(Request::Large(send)) = self.requests.get_mut(request.0) {
            send.at_rails -= 1;
            let is_ahead = send.ahead() > 0 && region.0 == request.0;
            if is_ahead || send.grant().is_some_and(|grant| grant.region == region) {
                send.sent += len;
            }
            let is_wanted = matches!(send.kept, Kept::Wanted);
            self.consider_sent(request);
            if is_wanted {
                self.consider_keeping(request);
            }
        }
    }

    /// Tells a sender that its message is here, by the number of its request.
    pub(crate) fn send_fin(&mut self, to: PeerId, theirs: u64) {
        let prompt = self.is_waiting;
        self.send_fin_as(to, theirs, prompt);
    }

    /// Sends the Fin of a message for which it is known already whether the receiver was waiting.
    pub(crate) fn send_fin_as(&mut self, to: PeerId, theirs: u64, prompt: bool) {
        let Some(peer) = self.peer_mut(to) else { return };
        peer.control(&Frame::Fin(Fin { request: theirs, prompt }));
        self.make_ready(to);
    }

    /// A receive has its message, whole or cut.
    pub(crate) fn end_recv(&mut self, request: RequestId, envelope: Envelope) {
        let Some(Request::Recv(recv)) = self.requests.get(request.0) else { return };
        let capacity = recv.into.len();
        let is_cut = envelope.len > capacity;
        let result = if is_cut { Err(Error::Truncated { envelope, capacity }) } else { Ok(envelope) };
        self.complete(request, result);
    }

    /// Whether a body waits for a rail that the peer has given no key for, and no other is left.
    pub(crate) fn has_useless_grant(&self, id: PeerId) -> bool {
        let Some(peer) = self.peer(id) else { return false };
        peer.bodies.iter().any(|body| match self.requests.get(body.request.0) {
            Some(Request::Large(send)) => send.grant().is_some_and(|grant| !peer.can_use(&grant.keys)),
            _ => false,
        })
    }
}
