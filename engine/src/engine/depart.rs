//! What departs: everything that a rail is given is booked here, whoever asked for it.
//!
//! A message that leaves in the call that submits it takes three steps. [`Engine::begin`] plans it and takes
//! its number in its flow, the driver sends it, and [`Engine::departed`] books what came of that. What waits
//! in the window is built into packets and cut into chunks when a rail asks ([`crate::engine::dispatch`],
//! [`crate::engine::chunks`]), and booked by the same function.

use crate::clock::Instant;
use crate::collect::request::{Envelope, Hints, Outgoing, Request};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::{Key, Packet, PeerId, RegionId, RequestId};
use crate::protocol::leaving::{Leaving, Refused, Submitted, To};
use crate::protocol::{Caller, Protocol, Wanted};
use crate::transfer::driver::Sent;
use crate::transfer::link::Link;
use crate::transfer::rail::Rail;
use crate::transfer::retention::{Cargo, ChunkCargo};
use alloc::boxed::Box;
use alloc::vec::Vec;
use nmad_wire::{ChunkHeader, Eager, Rts};

/// A departure, for the books.
pub(crate) struct Load {
    /// Messages and control frames of a packet; none: it is a chunk.
    pub(crate) entries: Option<u32>,
    /// Bytes of the packet, or of the chunk's data.
    pub(crate) len: u64,
    /// Bytes for which the rail is busy by its clock, headers included; zero: it takes no time.
    pub(crate) busy: u64,
    /// Its retransmission buffer, and the requests that end when it has left. None: it has
    /// left, and nobody will ask for it again.
    pub(crate) kept: Option<(Cargo, Vec<RequestId>)>,
}

/// Books a departure: number, retransmission, acknowledgement of the other direction, the rail's clock and
/// its counters.
#[inline]
pub(crate) fn book(now: Instant, to: PeerId, link: &mut Link, at: &mut Rail, load: Load) {
    let Load { entries, len, busy, kept } = load;
    // A chunk says what has arrived in order only.
    if entries.is_some() || link.rx.beyond() == 0 {
        link.rx.acknowledged();
    }
    match kept {
        Some((cargo, in_place)) => link.hold(now, cargo, len, in_place),
        None => link.tx.skip(),
    }
    match entries {
        Some(entries) => at.counters.left(entries, len),
        None => {
            at.counters.left_chunk(len);
            at.give_chunk();
        }
    }
    if busy > 0 {
        at.give(now, to, link.forecast.busy_ns(busy));
    }
}

impl Engine {
    /// Plans a message and begins to send it; none: it is to be submitted with [`Engine::send_as`], like any
    /// other. `refused`: the attempt that a rail has refused, if there was one.
    #[inline(always)]
    pub fn begin(
        &mut self,
        &(to, context, _): &To,
        len: u64,
        hints: Hints,
        caller: Caller,
        refused: Option<Refused>,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<Leaving> {
        let Engine { peers, rails, config, receipts, requests, cores, .. } = self;
        let peer = peers.get_mut(to.0 as usize)?.as_deref_mut()?;
        let wanted = Wanted { len, hints, caller, refused: refused.map(|refused| refused.protocol) };
        let mut began = Instant::default();
        let plan = peer.at_once((rails, cores), config.chunk, wanted, &mut || {
            began = clock();
            began
        })?;
        if receipts.is_some() && began == Instant::default() {
            began = clock();
        }
        let link = &peer.links[usize::from(plan.place)];
        let (number, ack) = (link.tx.next_number(), link.rx.below());
        let seq = match refused {
            Some(refused) => refused.seq,
            None => {
                let flow = peer.flows.of(context.0);
                let seq = flow.send_next;
                flow.send_next = seq.wrapping_add(1);
                seq
            }
        };
        if plan.protocol.spends() {
            peer.credit.spend_known(len);
        }
        let request = match plan.protocol {
            Protocol::Push | Protocol::Read => {
                RequestId(requests.insert(Request::Ended(Err(crate::Error::Cancelled))))
            }
            _ => RequestId(0),
        };
        Some(Leaving { plan, seq, number, ack, request, began })
    }

    /// Books a message that was injected and has ended, if nobody is to be told of it; false:
    /// [`Engine::departed`] books what came of it.
    #[inline(always)]
    pub(crate) fn has_left(&mut self, leaving: &Leaving, sent: Sent, to: PeerId, len: u64) -> bool {
        let is_plain = leaving.plan.protocol == Protocol::Inject && sent == Sent::Done;
        if is_plain && self.receipts.is_none() {
            self.injected(leaving, to, len);
            return true;
        }
        false
    }

    /// Books a message that took no time: the rail has no clock for it.
    #[inline(always)]
    pub(crate) fn injected(&mut self, leaving: &Leaving, to: PeerId, len: u64) {
        let Engine { peers, rails, .. } = self;
        let Some(peer) = peers.get_mut(to.0 as usize).and_then(|peer| peer.as_deref_mut()) else { return };
        let link = &mut peer.links[usize::from(leaving.plan.place)];
        let at = &mut rails[link.rail.index()];
        let len = Eager::ALONE_LEN as u64 + len;
        book(Instant::default(), to, link, at, Load { entries: Some(1), len, busy: 0, kept: None });
    }

    /// Books what came of sending; none: the rail has refused, and the message is still to be sent.
    #[inline]
    pub fn departed(
        &mut self,
        leaving: &Leaving,
        sent: Sent,
        to: &To,
        data: &Segments,
        hints: Hints,
        clock: &mut dyn FnMut() -> Instant,
    ) -> Option<Submitted> {
        if sent == Sent::Retry {
            self.take_back(leaving, to.0, data.len());
            return None;
        }
        let until = clock();
        let submitted = match leaving.plan.protocol {
            Protocol::Push => self.push_departed(leaving, sent, *to, (data, hints), until),
            Protocol::Read => self.read_departed(leaving, *to, (data, hints), until),
            Protocol::Inject => {
                self.injected(leaving, to.0, data.len());
                Submitted::Ended(leaving.seq)
            }
            _ => self.eager_departed(leaving, sent, to, data, until),
        };
        if self.receipts.is_some() {
            self.note_departure(
                leaving.plan,
                submitted,
                *to,
                (data.len(), leaving.seq),
                (leaving.began, until),
            );
        }
        Some(submitted)
    }

    /// A rail has refused: all reservations but the number in the flow are undone.
    fn take_back(&mut self, leaving: &Leaving, to: PeerId, len: u64) {
        if matches!(leaving.plan.protocol, Protocol::Push | Protocol::Read) {
            self.requests.remove(leaving.request.0);
        }
        if leaving.plan.protocol.spends()
            && let Some(peer) = self.peer_mut(to)
        {
            peer.credit.give_back(len);
        }
    }

    /// A message has left with a system call of its own.
    fn eager_departed(
        &mut self,
        leaving: &Leaving,
        sent: Sent,
        to: &To,
        data: &Segments,
        until: Instant,
    ) -> Submitted {
        self.book_deferred_ack();
        let Engine { peers, rails, buffers, rests_until, cores, .. } = self;
        let Some(peer) = peers.get_mut(to.0.0 as usize).and_then(|peer| peer.as_deref_mut()) else {
            return Submitted::Ended(leaving.seq);
        };
        let keeps = peer.keeps;
        if data.len() >= peer.parallel_min {
            cores.ask();
        }
        let link = &mut peer.links[usize::from(leaving.plan.place)];
        let at = &mut rails[link.rail.index()];
        let len = Eager::ALONE_LEN as u64 + data.len();
        // With several rails it is measured how long each takes, from before the call on.
        let held_at = if leaving.began == Instant::default() { until } else { leaving.began };
        let is_kept = sent == Sent::Posted || keeps;
        let kept = is_kept.then(|| (Cargo::Packet(None), Vec::new()));
        book(held_at, to.0, link, at, Load { entries: Some(1), len, busy: len, kept });
        if keeps && sent == Sent::Done {
            let mut packet = buffers.pop().unwrap_or_default();
            packet.in_place.clear();
            packet.bytes.clear();
            data.append_behind(&leaving.head(to, data.len()), &mut packet.bytes);
            link.tx.sent(leaving.number, Some(packet), true);
            link.reconsider();
            *rests_until = Instant::default();
        }
        // What the call took does not count as the cost of posting: the rail would be busy for as long again,
        // and an answer to what comes meanwhile would take another one.
        at.posted(None, until);
        self.note_number(to.0, leaving.number);
        Submitted::Ended(leaving.seq)
    }

    /// A large message has left behind its request to send, all of it or a part.
    fn push_departed(
        &mut self,
        leaving: &Leaving,
        sent: Sent,
        (to, context, tag): To,
        (data, hints): (&Segments, Hints),
        until: Instant,
    ) -> Submitted {
        let Engine { peers, rails, config, .. } = self;
        let (request, seq, len) = (leaving.request, leaving.seq, data.len());
        let Some(peer) = peers.get_mut(to.0 as usize).and_then(|peer| peer.as_deref_mut()) else {
            return Submitted::Request(request);
        };
        peer.announced += 1;
        if len > config.chunk || peer.is_readable(len) {
            peer.lateness.unasked();
        }
        let link = &mut peer.links[usize::from(leaving.plan.place)];
        let at = &mut rails[link.rail.index()];
        let is_part = sent == Sent::Posted;
        let packet = is_part.then(|| (Cargo::Packet(None), Vec::new()));
        let chunk = is_part.then(|| {
            let region = RegionId(request.0);
            let cargo = ChunkCargo { request, region, key: Key::PUSH, offset: 0, from: data.clone() };
            (Cargo::Chunk(cargo), Vec::new())
        });
        let head = Rts::ALONE_LEN as u64;
        book(until, to, link, at, Load { entries: Some(1), len: head, busy: 0, kept: packet });
        let busy = head + len + ChunkHeader::LEN as u64;
        book(until, to, link, at, Load { entries: None, len, busy, kept: chunk });
        at.posted(None, until);
        self.note_chunk(to, leaving.rail());
        let requests = &mut self.requests;
        if !is_part {
            requests.remove(request.0);
            return Submitted::Ended(seq);
        }
        let envelope = Envelope { peer: to, context, tag, len, seq };
        let outgoing = Outgoing { at_rails: 1, pushed: len, ..Outgoing::new(envelope, data.clone(), hints) };
        if let Some(place) = requests.get_mut(request.0) {
            *place = Request::Large(Box::new(outgoing));
        }
        // Another thread may have found meanwhile that the peer is gone.
        if self.peer(to).is_none_or(|peer| peer.is_gone()) {
            self.complete(request, Err(crate::Error::PeerLost(to)));
        }
        Submitted::Request(request)
    }

    /// The request to send of a message that its receiver reads has left.
    fn read_departed(
        &mut self,
        leaving: &Leaving,
        (to, context, tag): To,
        (data, hints): (&Segments, Hints),
        until: Instant,
    ) -> Submitted {
        let Engine { peers, rails, requests, .. } = self;
        let (request, seq, len) = (leaving.request, leaving.seq, data.len());
        let envelope = Envelope { peer: to, context, tag, len, seq };
        let (address, asked_at) = (data.address().unwrap_or(0), Some(until));
        let outgoing = Outgoing::new(envelope, data.clone(), hints);
        if let Some(place) = requests.get_mut(request.0) {
            *place = Request::Large(Box::new(Outgoing { wants_fin: true, address, asked_at, ..outgoing }));
        }
        // The engine was not let go since the message was planned: the peer is still there.
        let Some(peer) = peers.get_mut(to.0 as usize).and_then(|peer| peer.as_deref_mut()) else {
            return Submitted::Request(request);
        };
        peer.announced += 1;
        peer.offers_to_read();
        let link = &mut peer.links[usize::from(leaving.plan.place)];
        let at = &mut rails[link.rail.index()];
        let len = leaving.read(&(to, context, tag), len, address).len() as u64 * 8;
        book(until, to, link, at, Load { entries: Some(1), len, busy: 0, kept: None });
        Submitted::Request(request)
    }

    /// A request for a message that has ended at once. Since nobody can wait for it yet,
    /// [`Engine::next_ended`] does not tell so.
    #[inline]
    pub fn ended(&mut self, envelope: Envelope) -> RequestId {
        self.untold += 1;
        RequestId(self.requests.insert(Request::Ended(Ok(envelope))))
    }
}

/// A packet that is put together from what was in the window.
pub(crate) fn packet_load(packet: &Packet, entries: u32, in_place: Vec<RequestId>) -> Load {
    let len = packet.len() as u64;
    Load { entries: Some(entries), len, busy: len, kept: Some((Cargo::Packet(None), in_place)) }
}
