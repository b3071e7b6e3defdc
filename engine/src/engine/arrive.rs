//! Rail to application: checks, acknowledges, orders and matches the events of rails; each frame then goes
//! to the protocol whose state it changes.

use crate::clock::{Duration, Instant};
use crate::engine::Engine;
use crate::engine::peer::Standing;
use crate::packet::{PeerId, RailId};
use crate::receive::expected::Expected;
use crate::transfer::driver::Event;
use crate::transfer::link::Link;
use crate::transfer::retention::Released;
use nmad_wire::{Credit, Eager, Frame, Header, Kind, frames};

/// Largest nesting of replays: each further rail that dies adds one level, and there are no more than
/// rails.
const REPLAY_DEPTH: usize = nmad_wire::MAX_RAILS;
/// Packet buffers kept for reuse.
const BUFFERS_MAX: usize = 64;

/// Description of a peer's protocol violation, for which it is closed.
pub(crate) type Wrong = &'static str;

impl Engine {
    /// Handles an event of a rail.
    #[inline]
    pub fn handle(&mut self, now: Instant, rail: RailId, event: Event<'_>) {
        self.book_deferred_ack();
        self.reset_timers();
        self.date_receipts(now);
        let (from, packet) = match event {
            Event::Arrived { from, packet } => {
                // It owns nothing: skip the drop.
                core::mem::forget(event);
                (from, packet)
            }
            other => return self.on_other(now, rail, other),
        };
        // Most packets contain one message and nothing else; their header and frame are decoded in one
        // step.
        let taken = match Eager::alone(packet) {
            Some((header, eager, data)) => self.on_lone_message(now, rail, from, (header, eager, data)),
            None => self.on_packet(now, rail, from, packet),
        };
        if let Err(why) = taken {
            self.close_violator(from, why);
        }
    }

    /// Sets the time of receipts for events handled now.
    #[inline]
    fn date_receipts(&mut self, now: Instant) {
        if let Some(receipts) = &mut self.observers.receipts {
            receipts.now = now;
        }
    }

    /// Handles events other than packets.
    #[inline(never)]
    fn on_other(&mut self, now: Instant, rail: RailId, event: Event<'_>) {
        let (from, taken) = match event {
            Event::Arrived { from, packet } => (from, self.on_packet(now, rail, from, packet)),
            Event::Landed { from, number, ack, region, offset, len, kept } => {
                self.meet(from);
                self.note_arrival(rail, from, len);
                self.on_ack(now, rail, from, ack, 0);
                self.on_number(now, rail, from, number);
                self.rails[rail.index()].counters.chunks_in += 1;
                (from, if kept { self.on_landed(from, region, offset, len) } else { Ok(()) })
            }
            Event::Pushed { from, request, len } => {
                self.meet(from);
                (from, self.on_pushed(rail, from, request, len))
            }
            other => return self.on_link_event(now, rail, other),
        };
        if let Err(why) = taken {
            self.close_violator(from, why);
        }
    }

    /// Handles events of a rail's links and of its own orders.
    fn on_link_event(&mut self, now: Instant, rail: RailId, event: Event<'_>) {
        if let Event::Up { peer, .. } | Event::Lost { peer, .. } = event {
            self.meet(peer);
        }
        match event {
            Event::Sent { to, number, packet } => self.on_sent(rail, to, number, packet),
            Event::Accessed { request, came, .. } => self.on_accessed(request, came),
            Event::Moved { peer } => {
                self.peers.link_mut(peer, rail).into_iter().for_each(Link::moved);
            }
            Event::Carrier { peer, lost } => self.on_carrier(now, rail, peer, lost),
            Event::Buffers { peer, len } => {
                self.peers.link_mut(peer, rail).into_iter().for_each(|l| l.buffers = len);
            }
            Event::Up { peer, remote } => self.on_up(now, rail, peer, remote),
            Event::Lost { peer, why, unsent } => self.on_lost(now, rail, peer, &why, unsent),
            Event::Arrived { .. } | Event::Landed { .. } | Event::Pushed { .. } => {}
        }
    }

    /// Handles a packet that contains one message and nothing else.
    #[inline(always)]
    fn on_lone_message(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        (header, eager, data): (Header, Eager, &[u8]),
    ) -> Result<(), Wrong> {
        let Some(acknowledges) = self.on_header(now, rail, from, &header)? else { return Ok(()) };
        let is_due = self.on_eager(from, eager, data)?;
        if acknowledges {
            match self.receives.expected {
                // The thread that waits for the message continues first.
                Expected::Received(_) => self.deferred_ack = Some((now, rail, from, header.ack)),
                _ => self.on_ack(now, rail, from, header.ack, 0),
            }
        }
        if is_due {
            self.after_packet(from);
        }
        Ok(())
    }

    /// Handles any other packet.
    #[inline(never)]
    fn on_packet(&mut self, now: Instant, rail: RailId, from: PeerId, packet: &[u8]) -> Result<(), Wrong> {
        let header = Header::decode(packet).map_err(|e| e.0)?;
        if header.len as usize != packet.len() {
            return Err("length of the packet is not what arrived");
        }
        let Some(acknowledges) = self.on_header(now, rail, from, &header)? else { return Ok(()) };
        if acknowledges {
            self.on_ack(now, rail, from, header.ack, 0);
        }
        self.on_frames(now, rail, from, header.ack, &packet[Header::LEN..], 0)?;
        self.after_packet(from);
        Ok(())
    }

    /// Records the number in a packet's header. Returns whether its acknowledgement may be new; `None`: the
    /// whole packet is a duplicate, or the peer is lost.
    #[inline(always)]
    fn on_header(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        header: &Header,
    ) -> Result<Option<bool>, Wrong> {
        let Engine { peers, rails, .. } = self;
        let peer = peers.get_mut(from);
        let Some(peer) = peer.filter(|peer| !peer.is_gone()) else {
            return self.on_first_header(now, rail, from, header);
        };
        let counters = &mut rails[rail.index()].counters;
        counters.packets_in += 1;
        match header.kind {
            Kind::Packet => {}
            Kind::Notice => return Ok(Some(true)),
            Kind::Chunk | Kind::Control => return Err("chunk or control message as a packet"),
        }
        let Some(place) = peer.place_of(rail) else { return Ok(None) };
        let link = &mut peer.links[place];
        if link.rx.is_impossible(header.number) {
            return Err("number impossibly far ahead");
        }
        if peer.way.keeps {
            // With several rails the sender measures the time of each.
            link.rx.note(u64::from(header.len));
            peer.last_rail.note(place);
        }
        let acknowledges = peer.way.keeps || link.tx.len() > 0;
        let is_new = link.rx.accept(now, header.number);
        // On a lossy link the timers send the acknowledgement.
        let is_due = !link.lossy && link.ack_is_due(now);
        if !is_new {
            counters.duplicates += 1;
        }
        if is_due {
            self.make_ready(from);
        }
        if is_new {
            return Ok(Some(acknowledges));
        }
        if acknowledges {
            self.on_ack(now, rail, from, header.ack, 0);
        }
        Ok(None)
    }

    /// The first header of a peer that is made now, or one of a peer that is lost.
    #[cold]
    fn on_first_header(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        header: &Header,
    ) -> Result<Option<bool>, Wrong> {
        if self.meet(from) { self.on_header(now, rail, from, header) } else { Ok(None) }
    }

    /// With several rails, records bytes that arrived, so that the sender can measure the time of each
    /// rail.
    #[inline]
    fn note_arrival(&mut self, rail: RailId, from: PeerId, len: u64) {
        let Some(peer) = self.peer_mut(from).filter(|peer| peer.way.keeps) else { return };
        if let Some(link) = peer.link_mut(rail) {
            link.rx.note(len);
        }
    }

    /// Records the number of a chunk.
    fn on_number(&mut self, now: Instant, rail: RailId, from: PeerId, number: u32) {
        let Some(link) = self.peers.link_mut(from, rail) else { return };
        let is_new = link.rx.accept(now, number);
        if !link.lossy && link.ack_is_due(now) {
            self.make_ready(from);
        }
        self.rails[rail.index()].counters.duplicates += u64::from(!is_new);
    }

    /// Sends a peer an acknowledgement, or opens its links: either ends the sleep of its thread that waits.
    /// For ranks that see a change in memory that they share.
    pub fn wake(&mut self, id: PeerId) {
        self.meet(id);
        let Some(peer) = self.peer_mut(id) else { return };
        if let Some(link) = peer.links.iter_mut().find(|link| !link.lossy && link.is_up()) {
            link.rx.wanted = true;
        }
        self.make_ready(id);
    }

    /// Handles the acknowledgement that arrived with a message for which a thread waited.
    #[inline]
    pub(crate) fn book_deferred_ack(&mut self) {
        if let Some((came_at, rail, from, ack)) = self.deferred_ack.take() {
            self.on_ack(came_at, rail, from, ack, 0);
        }
    }

    #[inline(never)]
    pub(crate) fn on_ack(&mut self, now: Instant, rail: RailId, from: PeerId, ack: u32, beyond: u64) {
        let buffers = &mut self.buffers;
        let Some(peer) = self.peers.get_mut(from) else { return };
        let several = peer.way.keeps;
        let Some(link) = peer.link_mut(rail).filter(|link| link.tx.is_plausible(ack)) else {
            return;
        };
        let full = link.lossy && !link.accepts(usize::MAX);
        let mut free = |packet| {
            if buffers.len() < BUFFERS_MAX {
                buffers.push(packet);
            }
        };
        let in_flight = link.tx.pending();
        let news = link.acknowledge(now, ack, beyond, &mut free);
        let too_soon = |&(_, again): &(Instant, Instant)| link.congestion.is_too_soon(now.since(again));
        let late = news.again.filter(too_soon).map(|(first, _)| first);
        // The clock went back if it was sent later than now.
        if let Some(sent_at) = news.sample.or(late).filter(|&sent_at| sent_at <= now) {
            link.rtt.measured(now.since(sent_at));
            if link.lossy {
                link.congestion.measured(now, now.since(sent_at));
            }
        }
        if link.lossy && news.any {
            let capacity = || link.forecast.capacity();
            link.congestion.acknowledged(now, in_flight - link.tx.pending(), in_flight, &capacity);
        }
        if several && let Some(served) = news.served {
            let service = link.served(now, served);
            let rest = link.forecast.busy_ns(link.tx.pending());
            let is_sure = service.sample.is_some() && !service.is_two_way;
            self.rails[rail.index()].is_busy_until(from, now + Duration::from_ns(rest), is_sure);
            if let Some((len, ns, is_alone)) = service.sample {
                let usual_ns = link.forecast.profile().body().ns(len);
                peer.drop_common_load(usual_ns);
                if peer.learning.is_active {
                    self.timed_share(now, (from, rail), (len, ns), is_alone);
                }
                self.note_served(now, (from, rail), len, (ns, is_alone));
            }
        }
        if full {
            self.make_ready(from);
        }
    }

    fn on_frames(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        ack: u32,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(), Wrong> {
        for frame in frames(bytes) {
            match frame.map_err(|e| e.0)? {
                Frame::Eager(eager, data) => _ = self.on_eager(from, eager, data)?,
                Frame::Rts(rts, blocks) => self.on_rts(from, rts, blocks)?,
                Frame::Part(part, data) => self.on_part(from, part, data)?,
                Frame::Cts(cts) => self.on_cts(now, from, cts)?,
                Frame::Rtr(rtr) => self.on_rtr(from, rtr)?,
                Frame::Fin(fin) => self.on_fin(now, from, fin)?,
                // An acknowledgement in a replay concerns a dead link.
                Frame::Ack(_) if depth > 0 => {}
                Frame::Ack(selective) => self.on_ack(now, rail, from, ack, selective.beyond),
                Frame::Credit(credit) => {
                    self.peer_mut(from).into_iter().for_each(|peer| peer.credit.granted(credit.limit));
                }
                Frame::Replay(_) if depth >= REPLAY_DEPTH => return Err("replays nested too deeply"),
                Frame::Replay(replay) => {
                    if self.is_new_replay(now, (rail, from), replay.rail, replay.number) {
                        self.on_frames(now, rail, from, ack, replay.frames, depth + 1)?;
                    }
                }
                Frame::LinkDown(down) => self.on_link_down(from, down.rail),
                // The sender of a replay no longer waits for an answer to a query in it.
                Frame::Ask(_) | Frame::Seen(_) if depth > 0 => {}
                Frame::Ask(ask) => self.on_ask(rail, from, ask),
                Frame::Seen(seen) => self.on_seen(now, from, seen),
                Frame::Withdraw(withdraw) => self.on_withdraw(from, withdraw.region),
                Frame::Withdrawn(answer) => self.on_withdrawn(from, answer),
                Frame::Reclaim(reclaim) if reclaim.is_free => self.on_reclaimed(from, reclaim.request),
                Frame::Reclaim(reclaim) => self.on_reclaim(from, reclaim.request),
                Frame::Bye => {
                    if let Some(peer) = self.peer_mut(from) {
                        peer.standing = Standing::Leaving;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_new_replay(
        &mut self,
        now: Instant,
        (rail, from): (RailId, PeerId),
        remote: u8,
        number: u32,
    ) -> bool {
        let Some(peer) = self.peers.get_mut(from) else { return false };
        match peer.links.iter_mut().find(|link| link.remote == Some(remote)) {
            Some(link) => {
                let new = link.rx.accept(now, number);
                self.rails[rail.index()].counters.duplicates += u64::from(!new);
                new
            }
            None => peer.failover.orphan(remote).rx.accept(now, number),
        }
    }

    /// Sends a new credit limit, and notices of links that the peer has lost, if a packet has made them due
    /// ([`Peer::owes_news`]).
    #[inline(never)]
    fn after_packet(&mut self, from: PeerId) {
        self.consider_credit(from);
        if self.peer(from).is_some_and(|peer| !peer.failover.unsaid.is_empty()) {
            self.tell_unsaid(from);
        }
    }

    /// Sends the peer its new credit limit if it is worth a packet of its own; otherwise the next packet
    /// carries it. Also called when a receive consumes a message.
    #[inline]
    pub(crate) fn consider_credit(&mut self, id: PeerId) {
        let Some(peer) = self.peer_mut(id) else { return };
        if peer.credit.is_short()
            && let Some(limit) = peer.credit.next_limit()
        {
            peer.control(&Frame::Credit(Credit { limit }));
            self.make_ready(id);
        }
    }

    #[inline]
    fn on_sent(&mut self, rail: RailId, to: PeerId, number: u32, packet: Option<crate::packet::Packet>) {
        if let Some(notice) = packet.as_ref().filter(|p| is_notice(p)) {
            debug_assert!(!notice.is_empty());
            if let Some(link) = self.peers.link_mut(to, rail) {
                link.notices = link.notices.saturating_sub(1);
            }
            return self.recycle(packet);
        }
        let Some(peer) = self.peer_mut(to) else { return };
        let keep = peer.way.keeps;
        let more = !peer.has_nothing();
        let Some(link) = peer.link_mut(rail) else { return };
        let Released { packet, in_place, chunk } = link.tx.sent(number, packet, keep);
        link.recheck_timers();
        if more {
            self.make_ready(to);
        }
        self.recycle(packet);
        for request in in_place {
            self.entry_left(None, request);
        }
        if let Some((request, region, len)) = chunk {
            self.on_chunk_sent(request, region, len);
        }
    }

    #[inline]
    fn recycle(&mut self, packet: Option<crate::packet::Packet>) {
        if let Some(packet) = packet
            && self.buffers.len() < BUFFERS_MAX
        {
            self.buffers.push(packet);
        }
    }
}

/// Whether a packet has no number of its own.
pub(crate) fn is_notice(packet: &crate::packet::Packet) -> bool {
    packet.bytes.get(4) == Some(&(Kind::Notice as u8))
}
