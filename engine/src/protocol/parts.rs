//! Parts (`Protocol::EagerParts`): an eager message that is longer than a packet is sent in parts, each in
//! its own packet. The strategy splits the message over the rails like the body of a large message
//! ([`crate::protocol::bodies`]).
//!
//! A request to send with the envelope is sent first and says that all bytes arrive in parts; no answer is
//! needed. Rails overtake each other, so a part may arrive before the envelope; it is then stored in a
//! buffer of the engine, like all data without a posted receive. Both sides charge the message like any
//! eager one. It ends like a pushed message ([`crate::protocol::push`]). When a link dies its parts are
//! replayed like any packet; when the peer is lost the send ends with [`crate::Error::PeerLost`].

use crate::collect::matching::Comes;
use crate::collect::request::{Envelope, Hints};
use crate::collect::window::Entry;
use crate::engine::Engine;
use crate::engine::arrive::Wrong;
use crate::engine::peer::Peer;
use crate::packet::{PeerId, RegionId, RequestId};
use crate::protocol::eager::EagerSend;
use crate::protocol::rules::{Family, Message, Rules, Submission};
use crate::protocol::{Protocol, Request};
use crate::schedule::body::{Body, Carry};
use crate::transfer::region::Region;
use alloc::vec::Vec;
use nmad_wire::{Blocks, Eager, Frame, Part, Rts, flags};

/// Bytes of the request to send, which shares a packet with the first part.
pub(crate) const RTS_LEN: u64 = 34;

pub(crate) const RULES: Rules =
    Rules { protocol: Protocol::EagerParts, family: Family::Eager, fits, cost, begin };

/// A message that arrives in parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// The sender's request.
    request: u64,
    region: RegionId,
    len: u64,
    /// Its request to send has arrived.
    named: bool,
}

/// Returns whether a message is sent in parts: it is longer than a packet, or it is above the eager limit
/// (eager because its receiver is late) and several rails carry it faster than one.
fn fits(message: &Message, peer: &Peer) -> bool {
    let len = message.len as usize;
    let is_long = len > peer.longest_eager() || (peer.way.has_several && len > peer.way.eager_max);
    let is_possible = message.hints.probe.is_none() && peer.way.push.is_none();
    is_long && is_possible && peer.credit.has(message.len)
}

/// Returns the predicted time: all rails carry parts, each rail one after another.
fn cost(message: &Message, peer: &Peer) -> u64 {
    let start_ns = peer.used().map(|(_, link)| link.forecast.eager_ns(0)).min().unwrap_or(0);
    start_ns.saturating_add(peer.body_ns(message.len))
}

/// Adds the message to the bodies, which the strategy splits over the rails.
fn begin(engine: &mut Engine, submission: Submission) -> RequestId {
    let Submission { envelope, data, hints } = submission;
    let request = Request::Eager(EagerSend::new(envelope, hints.synchronous));
    let request = RequestId(engine.requests.insert(request));
    let Some(peer) = engine.peer_mut(envelope.peer) else { return request };
    peer.spend_eager(envelope.len, hints);
    let hints = Hints { rail: peer.wished(hints.rail), ..hints };
    let flags = flags::of(hints.synchronous, hints.unordered, false);
    peer.add_body(Body::in_parts(request, names(flags, &envelope, request), data, hints));
    engine.make_ready(envelope.peer);
    request
}

/// Returns the request to send of a message that arrives in parts.
pub(crate) fn names(flags: u8, envelope: &Envelope, request: RequestId) -> Rts {
    Rts {
        flags: flags | flags::PARTS,
        context: envelope.context.0,
        tag: envelope.tag.0,
        seq: envelope.seq,
        len: envelope.len,
        request: request.0,
        region: 0,
        pushed: 0,
        address: 0,
    }
}

impl Engine {
    /// Handles the request to send of a message that arrives in parts.
    pub(crate) fn name_parts(&mut self, from: PeerId, rts: &Rts) -> Result<Comes, Wrong> {
        let Some(region) = self.parts_of(from, rts.request, rts.len)? else {
            return Ok(Comes::Parts(rts.len));
        };
        let Some(peer) = self.peer_mut(from) else { return Ok(Comes::Stored(region)) };
        if let Some(parts) = peer.states.parts.iter_mut().find(|parts| parts.request == rts.request) {
            if parts.named {
                return Err("a request in parts is told twice");
            }
            parts.named = true;
        }
        self.drop_complete_parts(from, rts.request);
        Ok(Comes::Stored(region))
    }

    /// Returns the receive region of this message if some parts have arrived; otherwise charges the
    /// message.
    fn parts_of(&mut self, from: PeerId, request: u64, len: u64) -> Result<Option<RegionId>, Wrong> {
        let Some(peer) = self.peer_mut(from) else { return Ok(None) };
        if let Some(known) = peer.states.parts.iter().find(|parts| parts.request == request) {
            return if known.len == len { Ok(Some(known.region)) } else { Err("parts of another length") };
        }
        if peer.credit.received(len) { Ok(None) } else { Err("more eager data than it was granted") }
    }

    /// Records that parts of this message will arrive for this receive region.
    pub(crate) fn await_parts(&mut self, from: PeerId, request: u64, region: RegionId, len: u64) {
        if let Some(peer) = self.peer_mut(from) {
            peer.states.parts.push(Parts { request, region, len, named: true });
            peer.credit.consume(len);
        }
    }

    /// Makes a receive region with a buffer of the engine for parts without a posted receive.
    pub(crate) fn store_parts(&mut self, from: PeerId, request: u64, len: u64, named: bool) -> RegionId {
        let buffer = self.spare.take(len as usize);
        let region = Region::stored(from, buffer, core::iter::empty());
        let region = RegionId(self.regions.insert(region));
        if let Some(peer) = self.peer_mut(from) {
            peer.states.parts.push(Parts { request, region, len, named });
        }
        region
    }

    /// Handles a part that has arrived.
    pub(crate) fn on_part(&mut self, from: PeerId, part: Part, data: &[u8]) -> Result<(), Wrong> {
        let Part { request, offset, total, .. } = part;
        if data.is_empty() {
            return Err("an empty part");
        }
        let id = match self.parts_of(from, request, total)? {
            Some(id) => id,
            None => self.store_parts(from, request, total, false),
        };
        let Some(region) = self.regions.get_mut(id.0) else { return Ok(()) };
        region.into.write(offset, data);
        region.landed(offset, data.len() as u64);
        let stored = region.buffer.is_some();
        self.drop_complete_parts(from, request);
        if stored {
            self.consider_stored(id)
        } else {
            self.consider_landed(id)
        }
        Ok(())
    }

    /// Drops the state of a message whose request to send and parts have all arrived.
    fn drop_complete_parts(&mut self, from: PeerId, request: u64) {
        let Engine { peers, regions, .. } = self;
        let peer = peers.get_mut(from);
        let Some(peer) = peer else { return };
        let is_over = |parts: &Parts| {
            let whole = regions.get(parts.region.0).is_none_or(|region| region.covers(parts.len));
            parts.request == request && parts.named && whole
        };
        peer.states.parts.retain(|parts| !is_over(parts));
    }
}

/// Returns the greatest length of the next part of a body, if a packet carries up to `longest` bytes: the
/// first part has the request to send in its packet.
pub(crate) fn longest(body: &Body, longest: u64) -> u64 {
    let is_first = matches!(&body.carry, Carry::Parts(eager) if eager.names.is_some());
    longest - if is_first { RTS_LEN } else { 0 }
}

/// Makes the entries of a packet for the part of `len` bytes from `offset` on, which was removed from its
/// body.
pub(crate) fn take(body: &mut Body, send: &mut EagerSend, offset: u64, len: u64) -> Vec<Entry> {
    // The rest of the body counts as one waiting entry, and its last part takes over that count.
    send.waiting += u32::from(!body.is_empty());
    let (request, total) = (body.request, send.envelope.len);
    let Carry::Parts(eager) = &mut body.carry else { return Vec::new() };
    let part = Part { request: request.0, offset, total, len: len as u32 };
    let part = Entry::part(part, eager.data.slice(offset, len), request, &eager.hints);
    names_of(eager).into_iter().chain([part]).collect()
}

/// Takes the request to send of a body in parts, unless it was taken before.
fn names_of(eager: &mut crate::schedule::body::Eager) -> Option<Entry> {
    let names = eager.names.take()?;
    Some(Entry::rts(Frame::Rts(names, Blocks::NONE).to_vec(), None, &eager.hints))
}

impl Peer {
    /// Adds a body behind those of the same or higher priority.
    pub(crate) fn add_body(&mut self, body: Body) {
        let at = self.bodies.partition_point(|other| other.priority >= body.priority);
        self.bodies.insert(at, body);
    }

    /// Submits the requests to send of all bodies in parts to the window, before a message that depends on
    /// these messages.
    pub(crate) fn submit_names(&mut self) {
        for body in &mut self.bodies {
            let Carry::Parts(eager) = &mut body.carry else { continue };
            if let Some(names) = names_of(eager) {
                self.window.submit(eager.hints.rail, names);
            }
        }
    }
}

const _: () = assert!(Part::LEN <= Eager::MAX_LEN);
