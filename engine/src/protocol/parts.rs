//! Parts (`Protocol::EagerParts`): an eager message that is longer than a packet is sent in parts, each in
//! a packet of its own, over any rails.
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
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RegionId, RequestId};
use crate::protocol::eager::EagerSend;
use crate::protocol::rules::{Family, Message, Rules, Submission};
use crate::protocol::{Protocol, Request};
use crate::transfer::region::Region;
use nmad_wire::{Eager, Frame, Part, Rts, flags};

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

fn fits(message: &Message, peer: &Peer) -> bool {
    let is_long = message.len as usize > peer.longest_eager() && message.hints.probe.is_none();
    is_long && peer.way.push.is_none() && peer.credit.has(message.len)
}

/// All rails carry parts, each rail one after the other.
fn cost(message: &Message, peer: &Peer) -> u64 {
    let start_ns = peer.used().map(|(_, link)| link.forecast.eager_ns(0)).min().unwrap_or(0);
    start_ns.saturating_add(peer.body_ns(message.len))
}

/// Adds the request to send and the parts to the window.
fn begin(engine: &mut Engine, submission: Submission) -> RequestId {
    let Submission { envelope, data, hints } = submission;
    let Envelope { peer: to, context, tag, len, seq } = envelope;
    let mut send = EagerSend::new(envelope, hints.synchronous);
    // A part holds as much as the longest eager message, whose header is at least as long as a part's.
    let longest = engine.peer_mut(to).map_or(len, |peer| {
        peer.spend_eager(len, hints);
        peer.longest_eager() as u64
    });
    let first = part_len(0, len, longest);
    send.waiting = 1 + (len - first).div_ceil(longest) as u32;
    let request = RequestId(engine.requests.insert(Request::Eager(send)));
    let Some(peer) = engine.peer_mut(to) else { return request };
    let rail = peer.wished(hints.rail);
    let flags = flags::of(hints.synchronous, hints.unordered, false) | flags::PARTS;
    let (context, tag, name) = (context.0, tag.0, request.0);
    let names = Rts { flags, context, tag, seq, len, request: name, region: 0, pushed: 0, address: 0 };
    let mut offset = 0;
    let parts = core::iter::from_fn(|| {
        let size = part_len(offset, len, longest);
        offset += size;
        (size > 0).then_some((rail, size))
    });
    peer.submit_parts(names, parts, (&data, request), &hints);
    engine.make_ready(to);
    request
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

impl Peer {
    /// Adds the request to send of a message and its parts to the window. Each part has a length and may be
    /// dedicated to a rail. The request to send shares a packet with the first part.
    pub(crate) fn submit_parts(
        &mut self,
        names: Rts,
        parts: impl Iterator<Item = (Option<RailId>, u64)>,
        (data, request): (&Segments, RequestId),
        hints: &Hints,
    ) {
        let (name, total) = (names.request, names.len);
        let mut names = Some(Entry::rts(Frame::Rts(names).to_vec(), None, hints));
        let mut offset = 0;
        for (rail, size) in parts {
            names.take().into_iter().for_each(|names| self.window.submit(rail, names));
            let part = Part { request: name, offset, total, len: size as u32 };
            self.window.submit(rail, Entry::part(part, data.slice(offset, size), request, hints));
            offset += size;
        }
    }
}

/// Returns the length of the part that begins at `offset`, if none is longer than `longest`.
pub(crate) fn part_len(offset: u64, len: u64, longest: u64) -> u64 {
    let most = if offset == 0 { longest - RTS_LEN } else { longest };
    most.min(len - offset)
}

const _: () = assert!(Part::LEN <= Eager::MAX_LEN);
