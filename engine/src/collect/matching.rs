//! Matching of messages to receives by (peer, context, tag) with wildcards.
//!
//! MPI's rule: a message matches the receive posted first among those that accept it, and a receive matches
//! the message that arrived first among those it accepts. Both lookups take constant time with thousands of
//! entries.

use super::lists::{ListKey, Listed, Lists, Neighbours};
use super::request::{Context, Envelope, Source, TagMatch};
use super::run::Run;
use crate::memory::{Buffer, Spare, UNIT};
use crate::packet::{PeerId, RegionId, RequestId};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Data of unexpected messages up to this length is stored in the entry itself.
const INLINE: usize = 22;

/// The body of a message that arrived before its receive was posted.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// The data of a small message.
    Inline([u8; INLINE], u8),
    /// The data of a larger eager message, stored at its own size.
    Stored(Box<[u8]>),
    /// The data of a large eager message, in a reusable buffer.
    Kept(Buffer),
    /// A request to send, whether its sender waits for a Fin, and how the body is transferred.
    Rts { fin: bool, body: Comes },
}

/// How the body of a large message is transferred to the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comes {
    /// The sender waits for a receive region.
    Asked,
    /// The receiver reads it at this address of the sender's process.
    Read(u64),
    /// It goes to this receive region, which was opened before the request to send arrived.
    Invited(RegionId),
    /// This number of its bytes is in flight.
    Pushed(u64),
    /// All of it arrives in parts, each in a packet.
    Parts(u64),
    /// Its bytes are in flight to, or have arrived in, this receive region with a buffer of the engine.
    Stored(RegionId),
}

impl Arrived {
    /// Copies data; long data into a reusable buffer.
    pub(crate) fn store(data: &[u8], spare: &mut Spare) -> Arrived {
        if data.len() < UNIT {
            return Arrived::copy(data);
        }
        let buffer = spare.take(data.len());
        buffer.segments().write(0, data);
        Arrived::Kept(buffer)
    }

    pub(crate) fn copy(data: &[u8]) -> Arrived {
        if data.len() > INLINE {
            return Arrived::Stored(Box::from(data));
        }
        let mut inline = [0; INLINE];
        inline[..data.len()].copy_from_slice(data);
        Arrived::Inline(inline, data.len() as u8)
    }
}

/// An unexpected message.
#[derive(Debug)]
pub(crate) struct Unexpected {
    pub(crate) envelope: Envelope,
    pub(crate) body: Arrived,
    /// The sender's request if the sender waits for an answer, otherwise zero.
    pub(crate) request: u64,
    neighbours: [Neighbours; 4],
}

impl Unexpected {
    /// Whether all data of the message has arrived; `here` decides it for a large message and its receive
    /// region.
    pub(crate) fn is_here(&self, here: impl Fn(&Envelope, RegionId) -> bool) -> bool {
        match self.body {
            Arrived::Rts { body: Comes::Stored(region), .. } => here(&self.envelope, region),
            Arrived::Rts { .. } => false,
            Arrived::Inline(..) | Arrived::Stored(_) | Arrived::Kept(_) => true,
        }
    }

    /// Returns the bytes of its data that are stored in memory of the engine.
    fn stored_len(&self) -> u64 {
        match self.body {
            Arrived::Rts { body: Comes::Asked | Comes::Invited(_) | Comes::Read(_), .. } => 0,
            Arrived::Rts { .. } | Arrived::Inline(..) | Arrived::Stored(_) | Arrived::Kept(_) => {
                self.envelope.len
            }
        }
    }

    /// Whether it is stored in this receive region of the engine.
    pub(crate) fn lies_in(&self, stored: RegionId) -> bool {
        matches!(self.body, Arrived::Rts { body: Comes::Stored(region), .. } if region == stored)
    }
}

impl Listed<4> for Unexpected {
    #[inline]
    fn key(&self, class: usize) -> ListKey {
        let Envelope { context, peer, tag, .. } = self.envelope;
        ListKey::exact(context.0, peer.0, tag.0).widened(class & 1 != 0, class & 2 != 0)
    }

    fn neighbours(&mut self) -> &mut [Neighbours; 4] {
        &mut self.neighbours
    }
}

/// A posted receive.
#[derive(Debug)]
struct Posted {
    request: RequestId,
    key: ListKey,
    /// Order of posting, to choose between lists.
    turn: u64,
    neighbours: [Neighbours; 1],
}

impl Listed<1> for Posted {
    #[inline]
    fn key(&self, _: usize) -> ListKey {
        self.key
    }

    fn neighbours(&mut self) -> &mut [Neighbours; 1] {
        &mut self.neighbours
    }
}

/// Posted receives and unexpected messages of all peers.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    posted: Lists<Posted, 1>,
    /// The receives with one key; `posted` has none with that key.
    run: Run,
    unexpected: Lists<Unexpected, 4>,
    turn: u64,
    /// Number of posted receives with a wildcard; while it is zero, one lookup decides.
    wild: usize,
}

impl Matching {
    /// Returns the place of the unexpected message that such a receive would match.
    #[inline]
    pub(crate) fn peek(&mut self, from: Source, context: Context, tag: TagMatch) -> Option<u32> {
        if self.unexpected.len() == 0 {
            return None;
        }
        let key = key(from, context, tag);
        if key.is_half_wild() {
            self.unexpected.widen();
        }
        self.unexpected.first(&key)
    }

    pub(crate) fn unexpected(&self, place: u32) -> Option<&Unexpected> {
        self.unexpected.get(place)
    }

    pub(crate) fn take(&mut self, place: u32) -> Option<Unexpected> {
        self.unexpected.remove(place)
    }

    /// Drops the unexpected messages of a peer whose data has not arrived, and those after them in their
    /// flows: a receive for a dropped message must not match a later one. `here` decides for a large
    /// message and its receive region whether all data has arrived.
    pub(crate) fn forget_requests(&mut self, peer: PeerId, here: impl Fn(&Envelope, RegionId) -> bool) {
        let of_peer = || self.unexpected.iter().filter(|(_, m)| m.envelope.peer == peer);
        let announced: Vec<Envelope> =
            of_peer().filter(|(_, m)| !m.is_here(&here)).map(|(_, m)| m.envelope).collect();
        let follows = |e: &Envelope| {
            announced
                .iter()
                .any(|first| first.context == e.context && e.seq.wrapping_sub(first.seq) < 1 << 31)
        };
        let places: Vec<u32> = of_peer().filter(|(_, m)| follows(&m.envelope)).map(|(p, _)| p).collect();
        for place in places {
            self.unexpected.remove(place);
        }
    }

    /// Whether an unexpected message is stored in this receive region of the engine.
    pub(crate) fn keeps(&self, stored: RegionId) -> bool {
        self.unexpected.iter().any(|(_, message)| message.lies_in(stored))
    }

    /// The bodies of unexpected messages, with the sender and its request.
    pub(crate) fn bodies_mut(&mut self) -> impl Iterator<Item = (PeerId, u64, &mut Arrived)> {
        self.unexpected.iter_mut().map(|message| (message.envelope.peer, message.request, &mut message.body))
    }

    /// Whether there is any posted receive or unexpected message.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        !self.run.is_empty() || self.posted.len() > 0 || self.unexpected.len() > 0
    }

    /// Returns the number of unexpected messages of a peer, and the bytes of their data that are stored
    /// here.
    pub(crate) fn unexpected_from(&self, peer: PeerId) -> (u64, u64) {
        let of_peer = self.unexpected.iter().filter(|(_, message)| message.envelope.peer == peer);
        of_peer.fold((0, 0), |(count, bytes), (_, message)| (count + 1, bytes + message.stored_len()))
    }

    pub(crate) fn unexpected_count(&self) -> usize {
        self.unexpected.len()
    }

    /// Posts a receive that matches no unexpected message; returns its place.
    #[inline(always)]
    pub(crate) fn post(&mut self, request: RequestId, from: Source, context: Context, tag: TagMatch) -> u32 {
        self.turn += 1;
        if let (Source::Peer(peer), TagMatch::Exact(tag)) = (from, tag)
            && self.run.has(&ListKey::exact(context.0, peer.0, tag.0))
        {
            return self.run.push(request, self.turn);
        }
        self.post_other(request, key(from, context, tag))
    }

    /// Posts a receive that does not continue the run.
    #[inline(never)]
    fn post_other(&mut self, request: RequestId, key: ListKey) -> u32 {
        if self.run.is_empty() && !key.is_wild() && (self.posted.len() == 0 || self.lists_no(&key)) {
            self.run.begin(key);
            return self.run.push(request, self.turn);
        }
        self.wild += usize::from(key.is_wild());
        self.posted.insert(Posted { request, key, turn: self.turn, neighbours: Default::default() })
    }

    /// Whether the receive at `place` would match a message with its own exact key.
    pub(crate) fn is_first(&self, place: u32) -> bool {
        if Run::owns(place) {
            return self.run.is_first(place)
                && (self.wild == 0 || self.run_leads(self.first(self.run.key())));
        }
        let Some(posted) = self.posted.get(place) else { return false };
        !posted.key.is_wild() && self.first(posted.key) == Some(place)
    }

    /// Removes a receive that is not matched.
    pub(crate) fn retract(&mut self, place: u32) {
        if Run::owns(place) {
            return self.run.remove(place);
        }
        if let Some(posted) = self.posted.remove(place) {
            self.wild -= usize::from(posted.key.is_wild());
        }
    }

    /// Matches an arriving message: removes and returns the receive for it.
    // Inlined everywhere: one comparison nearly always decides.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, envelope: &Envelope) -> Option<RequestId> {
        let Envelope { context, peer, tag, .. } = *envelope;
        if self.wild == 0 && self.run.has(&ListKey::exact(context.0, peer.0, tag.0)) {
            return self.run.pop();
        }
        self.arrive_among(context.0, peer.0, tag.0)
    }

    /// Matches a message when receives other than the run are posted.
    #[inline(never)]
    fn arrive_among(&mut self, context: u32, peer: u32, tag: u64) -> Option<RequestId> {
        let exact = ListKey::exact(context, peer, tag);
        let runs = self.run.has(&exact);
        if self.wild == 0 && !runs {
            return self.posted.pop(&exact).map(|posted| posted.request);
        }
        let listed = if self.posted.len() > 0 { self.first(exact) } else { None };
        if runs && self.run_leads(listed) {
            return self.run.pop();
        }
        let posted = self.posted.remove(listed?)?;
        self.wild -= usize::from(posted.key.is_wild());
        Some(posted.request)
    }

    fn lists_no(&self, key: &ListKey) -> bool {
        self.posted.first(key).is_none()
    }

    /// Whether the first receive of the run was posted before this one of the lists.
    fn run_leads(&self, listed: Option<u32>) -> bool {
        let turn = listed.and_then(|place| self.posted.get(place)).map_or(u64::MAX, |posted| posted.turn);
        self.run.turn().is_some_and(|first| first < turn)
    }

    /// Stores a message that matches no receive.
    pub(crate) fn keep(&mut self, envelope: Envelope, body: Arrived, request: u64) {
        self.unexpected.insert(Unexpected { envelope, body, request, neighbours: Default::default() });
    }

    /// Returns the first receive in the lists that accepts messages with this key.
    fn first(&self, exact: ListKey) -> Option<u32> {
        let named = self.posted.first(&exact);
        if self.wild == 0 {
            return named;
        }
        let others = [exact.widened(true, false), exact.widened(false, true), exact.widened(true, true)];
        let all = others.iter().filter_map(|key| self.posted.first(key)).chain(named);
        all.min_by_key(|&place| self.posted.get(place).map_or(u64::MAX, |p| p.turn))
    }
}

#[inline]
fn key(from: Source, context: Context, tag: TagMatch) -> ListKey {
    let peer = if let Source::Peer(peer) = from { Some(peer.0) } else { None };
    let tag = if let TagMatch::Exact(tag) = tag { Some(tag.0) } else { None };
    ListKey::new(context.0, peer, tag)
}
