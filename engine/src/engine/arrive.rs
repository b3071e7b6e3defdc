//! Rail to application: what a rail reports.

use super::Engine;
use super::peer::Standing;
use crate::clock::{Duration, Instant};
use crate::collect::matching::{Arrived, Comes};
use crate::collect::request::{Context, Envelope, Request, Tag};
use crate::collect::sequence::{Early, Place};
use crate::packet::{PeerId, RailId, RegionId, RequestId};
use crate::transfer::driver::Event;
use crate::transfer::link::Link;
use crate::transfer::retention::Released;
use nmad_wire::{Credit, Eager, Fin, Frame, Header, Kind, Rts, flags, frames};

/// Replays of replays come with each further rail that dies; there are no more than rails.
const REPLAY_DEPTH: usize = nmad_wire::MAX_RAILS;
/// Packet buffers kept for reuse.
const BUFFERS_MAX: usize = 64;

impl Engine {
    /// A rail reports something.
    #[inline]
    pub fn handle(&mut self, now: Instant, rail: RailId, event: Event<'_>) {
        self.hear();
        self.stir();
        self.date_receipts(now);
        let Event::Arrived { from, packet } = event else { return self.on_other(now, rail, event) };
        match self.on_plain(now, rail, from, packet) {
            Ok(true) => {}
            Ok(false) => self.on_any(now, rail, from, packet),
            Err(why) => self.violate(from, why),
        }
    }

    /// Receipts of what is found now bear this time.
    #[inline]
    fn date_receipts(&mut self, now: Instant) {
        if let Some(receipts) = &mut self.receipts {
            receipts.now = now;
        }
    }

    /// A packet that does not go the short way.
    #[inline(never)]
    fn on_any(&mut self, now: Instant, rail: RailId, from: PeerId, packet: &[u8]) {
        self.post_expected();
        if let Err(why) = self.on_packet(now, rail, from, packet) {
            self.violate(from, why);
        }
    }

    /// Anything but a packet.
    #[inline(never)]
    fn on_other(&mut self, now: Instant, rail: RailId, event: Event<'_>) {
        match event {
            Event::Arrived { from, packet } => self.on_any(now, rail, from, packet),
            Event::Sent { to, number, packet } => self.on_sent(rail, to, number, packet),
            Event::Landed { from, number, ack, region, offset, len, kept } => {
                self.note_arrival(rail, from, len);
                self.on_number(now, rail, from, number, ack);
                self.rails[rail.index()].counters.chunks_in += 1;
                if kept && let Err(why) = self.on_landed(from, region, offset, len) {
                    self.violate(from, why);
                }
            }
            Event::Pushed { from, request, len } => {
                if let Err(why) = self.on_pushed(rail, from, request, len) {
                    self.violate(from, why);
                }
            }
            Event::Remote { from, message } => {
                if let Err(why) = self.on_remote(now, rail, from, message) {
                    self.violate(from, why);
                }
            }
            Event::Accessed { request, came, .. } => self.on_accessed(request, came),
            Event::Declined { to, number } => self.on_declined(rail, to, number),
            Event::Moved { peer } => {
                let link = self.peer_mut(peer).and_then(|p| p.link_mut(rail));
                link.into_iter().for_each(Link::moved);
            }
            Event::Carrier { peer, lost } => self.on_carrier(now, rail, peer, lost),
            Event::Buffers { peer, len } => {
                self.peer_mut(peer).and_then(|p| p.link_mut(rail)).into_iter().for_each(|l| l.buffers = len);
            }
            Event::Up { peer, remote } => self.on_up(now, rail, peer, remote),
            Event::Lost { peer, why, unsent } => self.on_lost(now, rail, peer, &why, unsent),
        }
    }

    /// With several rails the sender wants to know how long each takes.
    #[inline]
    fn note_arrival(&mut self, rail: RailId, from: PeerId, len: u64) {
        let Some(peer) = self.peer_mut(from).filter(|peer| peer.keeps) else { return };
        if let Some(link) = peer.link_mut(rail) {
            link.rx.note(len);
        }
    }

    /// Takes note of a number and an acknowledgement; false if the number was there before.
    #[inline]
    fn on_number(&mut self, now: Instant, rail: RailId, from: PeerId, number: u32, ack: u32) -> bool {
        self.on_ack(now, rail, from, ack, 0);
        let Some(peer) = self.peer_mut(from) else { return false };
        let Some(link) = peer.link_mut(rail) else { return false };
        let new = link.rx.accept(now, number);
        if !link.lossy && link.ack_is_due(now) {
            self.make_ready(from);
        }
        self.rails[rail.index()].counters.duplicates += u64::from(!new);
        new
    }

    #[inline(never)]
    pub(super) fn on_ack(&mut self, now: Instant, rail: RailId, from: PeerId, ack: u32, beyond: u64) {
        let buffers = &mut self.buffers;
        let Some(peer) = self.peers.get_mut(from.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        let several = peer.keeps;
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
        let news = link.tx.acknowledge(ack, beyond, &mut free);
        if news.any {
            link.stir();
            link.rtt.progress();
            link.vain.restart(now);
        }
        let too_soon = |&(_, again): &(Instant, Instant)| link.congestion.is_too_soon(now.since(again));
        let late = news.again.filter(too_soon).map(|(first, _)| first);
        if let Some(sent_at) = news.sample.or(late) {
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
            let (len, took) = (served.len, link.served(now, served));
            let rest = link.forecast.busy_ns(link.tx.pending());
            self.rails[rail.index()].is_busy_until(from, now + Duration::from_ns(rest), took.is_some());
            if took.is_some() {
                let usual_ns = link.forecast.profile().body().ns(len);
                peer.consider_hidden(usual_ns);
            }
            if peer.is_curious
                && let Some((ns, is_alone)) = took
            {
                self.timed_share(now, (from, rail), (len, ns), is_alone);
            }
        }
        if full {
            self.make_ready(from);
        }
    }

    #[inline]
    fn on_packet(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        packet: &[u8],
    ) -> Result<(), &'static str> {
        let header = Header::decode(packet).map_err(|e| e.0)?;
        if header.len as usize != packet.len() {
            return Err("length of the packet is not what arrived");
        }
        let Some(peer) = self.peers.get_mut(from.0 as usize).and_then(|peer| peer.as_deref_mut()) else {
            return Ok(());
        };
        if peer.is_gone() {
            return Ok(());
        }
        self.rails[rail.index()].counters.packets_in += 1;
        match header.kind {
            Kind::Packet => {
                let keeps = peer.keeps;
                let Some(link) = peer.link_mut(rail) else { return Ok(()) };
                if link.rx.is_impossible(header.number) {
                    return Err("number impossibly far ahead");
                }
                // Nothing waits for this acknowledgement, and nobody measures the rail.
                if !keeps && link.tx.len() == 0 {
                    let new = link.rx.accept(now, header.number);
                    if link.ack_is_due(now) {
                        self.make_ready(from);
                    }
                    if !new {
                        return Ok(());
                    }
                } else {
                    self.note_arrival(rail, from, packet.len() as u64);
                    if !self.on_number(now, rail, from, header.number, header.ack) {
                        return Ok(());
                    }
                }
            }
            Kind::Notice => self.on_ack(now, rail, from, header.ack, 0),
            Kind::Chunk | Kind::Control => return Err("chunk or control message as a packet"),
        }
        self.on_frames(now, rail, from, header.ack, &packet[Header::LEN..], 0)?;
        self.consider_credit(from);
        if self.peer(from).is_some_and(|peer| !peer.unsaid.is_empty()) {
            self.tell_unsaid(from);
        }
        Ok(())
    }

    fn on_frames(
        &mut self,
        now: Instant,
        rail: RailId,
        from: PeerId,
        ack: u32,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(), &'static str> {
        for frame in frames(bytes) {
            match frame.map_err(|e| e.0)? {
                Frame::Eager(eager, data) => self.on_eager(from, eager, data)?,
                Frame::Rts(rts) => self.on_rts(from, rts)?,
                Frame::Part(part, data) => self.on_part(from, part, data)?,
                Frame::Cts(cts) => self.on_cts(now, from, cts)?,
                Frame::Rtr(rtr) => self.on_rtr(from, rtr)?,
                Frame::Fin(fin) => self.on_fin(now, from, fin)?,
                // An acknowledgement in a replay is about a link that is dead.
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
                // Of a replay nobody waits for an answer any more.
                Frame::Ask(_) | Frame::Seen(_) if depth > 0 => {}
                Frame::Ask(ask) => self.on_ask(rail, from, ask),
                Frame::Seen(seen) => self.on_seen(now, from, seen),
                Frame::Withdraw(withdraw) => self.on_withdraw(from, withdraw.region),
                Frame::Withdrawn(answer) => self.on_withdrawn(from, answer),
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
        let peers = &mut self.peers;
        let Some(peer) = peers.get_mut(from.0 as usize).and_then(|p| p.as_deref_mut()) else { return false };
        match peer.links.iter_mut().find(|link| link.remote == Some(remote)) {
            Some(link) => {
                let new = link.rx.accept(now, number);
                self.rails[rail.index()].counters.duplicates += u64::from(!new);
                new
            }
            None => peer.orphan(remote).rx.accept(now, number),
        }
    }

    #[inline]
    fn on_eager(&mut self, from: PeerId, eager: Eager, data: &[u8]) -> Result<(), &'static str> {
        let envelope = Envelope {
            peer: from,
            context: Context(eager.context),
            tag: Tag(eager.tag),
            len: data.len() as u64,
            seq: eager.seq,
        };
        let Some(peer) = self.peer_mut(from) else { return Ok(()) };
        if !peer.credit.received(envelope.len) {
            return Err("more eager data than it was granted");
        }
        let flow = peer.flows.of(eager.context);
        flow.large = false;
        let followed = flow.has_early();
        if eager.flags & flags::UNORDERED == 0 {
            match flow.place(eager.seq) {
                Place::Next => flow.recv_next = flow.recv_next.wrapping_add(1),
                Place::Past => return Err("sequence number of an earlier message"),
                Place::Early => {
                    let body = Arrived::copy(data);
                    let early = Early { envelope, body, request: eager.request };
                    return if flow.park(early) { Ok(()) } else { Err("sequence number used twice") };
                }
            }
        }
        match self.matching.arrive(&envelope) {
            Some(request) => self.deliver(request, envelope, data, eager.request),
            None => self.matching.keep(envelope, Arrived::store(data, &mut self.spare), eager.request),
        }
        if followed {
            self.continue_flow(from, eager.context);
        }
        Ok(())
    }

    fn on_rts(&mut self, from: PeerId, rts: Rts) -> Result<(), &'static str> {
        let (context, tag) = (Context(rts.context), Tag(rts.tag));
        let envelope = Envelope { peer: from, context, tag, len: rts.len, seq: rts.seq };
        let mut body = match rts {
            Rts { flags, .. } if flags & flags::PARTS != 0 => self.name_parts(from, &rts)?,
            Rts { pushed: 1.., .. } => Comes::Pushed(rts.pushed),
            Rts { flags, .. } if flags & flags::INVITED != 0 => Comes::Invited(RegionId(rts.region)),
            Rts { flags, .. } if flags & flags::READ != 0 => Comes::Read(rts.address),
            _ => Comes::Asked,
        };
        let fin = rts.flags & flags::FIN != 0;
        let Some(peer) = self.peer_mut(from) else { return Ok(()) };
        if rts.pushed > 0 && !peer.credit.received(rts.pushed) {
            return Err("more pushed than it was granted");
        }
        if rts.flags & flags::UNORDERED == 0 {
            let flow = peer.flows.of(rts.context);
            match flow.place(rts.seq) {
                Place::Next => flow.recv_next = flow.recv_next.wrapping_add(1),
                Place::Past => return Err("sequence number of an earlier message"),
                Place::Early => {
                    body = self.stored(from, body, rts.request);
                    return self.park_request(envelope, Arrived::Rts { fin, body }, rts.request);
                }
            }
        }
        self.match_parked(Early { envelope, body: Arrived::Rts { fin, body }, request: rts.request });
        self.continue_flow(from, rts.context);
        Ok(())
    }

    /// Matches what had to wait for earlier messages of its flow.
    #[inline]
    fn continue_flow(&mut self, from: PeerId, context: u32) {
        while let Some(peer) = self.peer_mut(from)
            && let flow = peer.flows.of(context)
            && let Some(early) = flow.next_early()
        {
            flow.recv_next = flow.recv_next.wrapping_add(1);
            self.match_parked(early);
        }
    }

    fn match_parked(&mut self, early: Early) {
        let Early { envelope, body, request: theirs } = early;
        let Some(request) = self.matching.arrive(&envelope) else {
            let body = self.without_receive(envelope.peer, body, theirs);
            return self.matching.keep(envelope, body, theirs);
        };
        self.deliver_body(request, envelope, body, theirs);
    }

    fn park_request(&mut self, envelope: Envelope, body: Arrived, request: u64) -> Result<(), &'static str> {
        let Some(peer) = self.peer_mut(envelope.peer) else { return Ok(()) };
        let parked = peer.flows.of(envelope.context.0).park(Early { envelope, body, request });
        if parked { Ok(()) } else { Err("sequence number used twice") }
    }

    /// What becomes of a message's body when no receive takes it yet.
    fn without_receive(&mut self, from: PeerId, body: Arrived, theirs: u64) -> Arrived {
        match body {
            Arrived::Rts { fin, body: body @ (Comes::Pushed(_) | Comes::Parts(_)) } => {
                Arrived::Rts { fin, body: self.stored(from, body, theirs) }
            }
            // Invited by a receive that is gone: the sender gets another receive region.
            Arrived::Rts { fin, body: Comes::Invited(_) } => Arrived::Rts { fin, body: Comes::Asked },
            other => other,
        }
    }

    /// Gives memory of our own to a body that arrives before a receive asks for it.
    fn stored(&mut self, from: PeerId, body: Comes, theirs: u64) -> Comes {
        match body {
            Comes::Pushed(len) => Comes::Stored(self.store_push(from, theirs, len)),
            Comes::Parts(len) => Comes::Stored(self.store_parts(from, theirs, len, true)),
            other => other,
        }
    }

    /// A receive has matched a small message.
    #[inline]
    pub(super) fn deliver(&mut self, request: RequestId, envelope: Envelope, data: &[u8], theirs: u64) {
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
            if theirs != 0 {
                peer.control(&Frame::Fin(Fin { request: theirs }));
                self.make_ready(envelope.peer);
            }
        }
        self.end_recv(request, envelope);
    }

    /// Tells the peer its new limit when it is worth a packet of its own; otherwise the next packet carries
    /// it. Also asked for when a receive consumes a message.
    #[inline]
    pub(super) fn consider_credit(&mut self, id: PeerId) {
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
            if let Some(link) = self.peer_mut(to).and_then(|peer| peer.link_mut(rail)) {
                link.notices = link.notices.saturating_sub(1);
            }
            return self.recycle(packet);
        }
        let Some(peer) = self.peer_mut(to) else { return };
        if peer.offered.as_ref().is_some_and(|offered| offered.is(rail, number)) {
            return self.on_taken(to);
        }
        let keep = peer.keeps;
        let more = !peer.has_nothing();
        let Some(link) = peer.link_mut(rail) else { return };
        let Released { packet, in_place, chunk } = link.tx.sent(number, packet, keep);
        link.stir();
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

    fn on_chunk_sent(&mut self, request: RequestId, region: crate::packet::RegionId, len: u64) {
        if let Some(Request::Large(outgoing)) = self.requests.get_mut(request.0) {
            outgoing.at_rails -= 1;
            let pushed = outgoing.pushed > 0 && region.0 == request.0;
            if pushed || outgoing.grant.is_some_and(|grant| grant.region == region) {
                outgoing.sent += len;
            }
            self.consider_sent(request);
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
pub(super) fn is_notice(packet: &crate::packet::Packet) -> bool {
    packet.bytes.get(4) == Some(&(Kind::Notice as u8))
}
