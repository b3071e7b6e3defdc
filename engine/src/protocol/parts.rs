//! Eager messages that are longer than a packet: parts, each in a packet of its own, over whatever rails
//! take them.
//!
//! A request to send with the names goes first and says that all bytes come in parts; nobody is asked. Rails
//! overtake each other, so a part may come before the names, and goes to memory of our own then, as
//! everything does for which no receive is posted. Both sides charge the message like any eager one. Its end
//! is that of a pushed message ([`crate::protocol::push`]).

use crate::collect::matching::Comes;
use crate::collect::request::{EagerSend, Envelope, Hints, Request};
use crate::collect::window::Entry;
use crate::engine::Engine;
use crate::engine::peer::{Parts, Peer};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RegionId, RequestId};
use crate::protocol::leaving::Refused;
use crate::transfer::region::Region;
use nmad_wire::{Eager, Frame, Part, Rts, flags};

/// Bytes of the request to send, which shares a packet with the first part.
pub(crate) const NAMES_LEN: u64 = 34;

impl Engine {
    /// Submits a message in parts; it has credit.
    #[cold]
    pub(crate) fn send_in_parts(
        &mut self,
        envelope: Envelope,
        data: Segments,
        hints: Hints,
        refused: Option<Refused>,
    ) -> RequestId {
        let Envelope { peer: to, context, tag, len, seq } = envelope;
        let mut send = EagerSend::new(envelope, hints.synchronous);
        let Some(peer) = self.peers.get_mut(to.0 as usize).and_then(|p| p.as_deref_mut()) else {
            return RequestId::NONE;
        };
        // As long as the longest eager message, whose head is no shorter than a part's.
        let longest = peer.longest_eager() as u64;
        let first = part_len(0, len, longest);
        send.waiting = 1 + (len - first).div_ceil(longest) as u32;
        let rail = peer.wished(hints.rail);
        let request = self.enter(refused, Request::Eager(send));
        let Some(peer) = self.peer_mut(to) else { return request };
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
        self.make_ready(to);
        request
    }

    /// The names of a message whose bytes come in parts have come.
    pub(crate) fn name_parts(&mut self, from: PeerId, rts: &Rts) -> Result<Comes, Wrong> {
        let Some(region) = self.parts_of(from, rts.request, rts.len)? else {
            return Ok(Comes::Parts(rts.len));
        };
        let Some(peer) = self.peer_mut(from) else { return Ok(Comes::Stored(region)) };
        if let Some(parts) = peer.parts.iter_mut().find(|parts| parts.request == rts.request) {
            if parts.named {
                return Err("a request in parts is told twice");
            }
            parts.named = true;
        }
        self.forget_parts(from, rts.request);
        Ok(Comes::Stored(region))
    }

    /// Where parts of this message go, if some have come; otherwise it is charged now.
    fn parts_of(&mut self, from: PeerId, request: u64, len: u64) -> Result<Option<RegionId>, Wrong> {
        let Some(peer) = self.peer_mut(from) else { return Ok(None) };
        if let Some(known) = peer.parts.iter().find(|parts| parts.request == request) {
            return if known.len == len { Ok(Some(known.region)) } else { Err("parts of another length") };
        }
        if peer.credit.received(len) { Ok(None) } else { Err("more eager data than it was granted") }
    }

    /// Bytes of this message will come in parts, for this receive region.
    pub(crate) fn await_parts(&mut self, from: PeerId, request: u64, region: RegionId, len: u64) {
        if let Some(peer) = self.peer_mut(from) {
            peer.parts.push(Parts { request, region, len, named: true });
            peer.credit.consume(len);
        }
    }

    /// Memory of our own for parts that no receive has asked for yet.
    pub(crate) fn store_parts(&mut self, from: PeerId, request: u64, len: u64, named: bool) -> RegionId {
        let buffer = self.spare.take(len as usize);
        let region = Region::stored(from, buffer, core::iter::empty());
        let region = RegionId(self.regions.insert(region));
        if let Some(peer) = self.peer_mut(from) {
            peer.parts.push(Parts { request, region, len, named });
        }
        region
    }

    /// A part has arrived.
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
        self.forget_parts(from, request);
        if stored {
            self.consider_stored(id)
        } else {
            self.consider_landed(id)
        }
        Ok(())
    }

    /// A message that has its names and all of its parts needs nothing more.
    fn forget_parts(&mut self, from: PeerId, request: u64) {
        let Engine { peers, regions, .. } = self;
        let peer = peers.get_mut(from.0 as usize).and_then(|peer| peer.as_deref_mut());
        let Some(peer) = peer else { return };
        let is_over = |parts: &Parts| {
            let whole = regions.get(parts.region.0).is_none_or(|region| region.covers(parts.len));
            parts.request == request && parts.named && whole
        };
        peer.parts.retain(|parts| !is_over(parts));
    }
}

impl Peer {
    /// Puts the names of a message into the window, and its parts: for each the rail, if it is meant for one,
    /// and its bytes. The names go with the first part.
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

/// Bytes of the part that begins at `offset`, if none is longer than `longest`.
pub(crate) fn part_len(offset: u64, len: u64, longest: u64) -> u64 {
    let most = if offset == 0 { longest - NAMES_LEN } else { longest };
    most.min(len - offset)
}

/// Why a peer is closed.
type Wrong = &'static str;

const _: () = assert!(Part::LEN <= Eager::MAX_LEN);
