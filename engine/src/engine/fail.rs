//! Links that open and die, peers that are gone. Loss of a packet and loss of a rail are the same case:
//! what the peer may not have goes over another rail.

use crate::clock::Instant;
use crate::collect::request::{Error, Source};
use crate::collect::window::Entry;
use crate::engine::arrive::is_notice;
use crate::engine::dispatch::frames_of;
use crate::engine::failover::{LatePacket, Lost};
use crate::engine::peer::{Peer, Standing};
use crate::engine::{Engine, Inspect, Notice, NoticeKind, Setup};
use crate::packet::{Packet, PeerId, RailId, RequestId};
use crate::protocol::read::Reading;
use crate::protocol::regions::is_here;
use crate::protocol::rendezvous::NO_KEY;
use crate::protocol::{PeerStates, Request};
use crate::schedule::body::Body;
use crate::schedule::builder::Built;
use crate::transfer::driver::Order;
use crate::transfer::link::{Link, State};
use crate::transfer::retention::{Cargo, ChunkCargo, InFlight};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use nmad_wire::{Frame, LinkDown, Replay, frames};

impl Engine {
    /// Asks for all links to a peer that nobody has opened yet; the first that opens is used at once.
    pub(crate) fn open_links(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.is_met = true;
        for link in peer.links.iter_mut().filter(|link| link.state == State::Cold) {
            link.state = State::Connecting;
            self.rails[link.rail.index()].errands.push_back(Order::Connect { to: id });
            self.has_errands = true;
        }
    }

    /// Says goodbye to every peer, so that the end of our links is no failure to them. What is in the
    /// window still goes.
    pub fn leave(&mut self) {
        self.is_leaving = true;
        for id in (0..self.peers.next_id().0).map(PeerId) {
            if let Some(peer) = self.peer_mut(id).filter(|peer| peer.links.iter().any(|link| link.is_up())) {
                peer.control(&Frame::Bye);
                self.make_ready(id);
            }
        }
    }

    /// The peer broke the protocol: it is closed with one message, and nothing else is touched.
    #[cold]
    pub(crate) fn close_violator(&mut self, id: PeerId, why: &'static str) {
        let me = self.config.me.0;
        self.fail_peer(id, &format!("peer {} sent a malformed packet ({why}); closed by rank {me}", id.0));
    }

    /// The other side gave up a link: so do we, and what it may not have got is replayed.
    pub(crate) fn on_link_down(&mut self, from: PeerId, remote: u8) {
        let Some(peer) = self.peer_mut(from) else { return };
        let known = peer.links.iter_mut().find(|link| link.remote == Some(remote));
        let known = known.and_then(|link| Some((link.rail, link.notes.as_mut()?)));
        if let Some((rail, notes)) = known.filter(|(_, notes)| notes.downs_due > 0) {
            // It speaks of the link that was before this one.
            notes.downs_due -= 1;
            if notes.downs_due == 0 {
                self.end_unknown(from, rail);
            }
            return;
        }
        let link = peer.links.iter().find(|link| link.remote == Some(remote) && link.is_up());
        match link.map(|link| link.rail) {
            Some(rail) => {
                if let Some(link) = peer.link_mut(rail) {
                    link.told = true;
                }
                self.give_up(rail, from, "the peer gave it up");
            }
            None => match peer.links.iter().find(|link| link.remote == Some(remote)).map(|link| link.rail) {
                Some(rail) => self.end_unknown(from, rail),
                None => peer.failover.orphan(remote).is_down = true,
            },
        }
    }

    /// Has a rail close the link to a peer.
    pub(crate) fn close_link(&mut self, rail: RailId, id: PeerId) {
        self.rails[rail.index()].errands.push_back(Order::Close { to: id });
        self.has_errands = true;
        self.closing += 1;
    }

    /// Closes a link; the rail answers with what it has not sent.
    pub(crate) fn give_up(&mut self, rail: RailId, id: PeerId, why: &str) {
        let Some(link) = self.peers.link_mut(id, rail) else { return };
        if link.closing {
            return;
        }
        link.closing = true;
        self.close_link(rail, id);
        self.tell(rail, id, why);
    }

    /// A rail reports the end of a link.
    pub(crate) fn on_lost(&mut self, now: Instant, rail: RailId, id: PeerId, why: &str, unsent: Vec<Order>) {
        let may_return = self.rails[rail.index()].limits.returns;
        let Some(peer) = self.peers.get_mut(id) else { return };
        let leaving = peer.standing != Standing::Here;
        let Some(link) = peer.link_mut(rail) else { return };
        if !link.is_there() {
            link.notes_mut().suspicion.failed(now);
            return self.on_late(rail, id, unsent);
        }
        let is_abandoned = link.notes.as_ref().is_some_and(|notes| notes.is_abandoned);
        let (was_up, returns) = (link.is_up(), may_return && !leaving && !is_abandoned);
        if returns {
            let downs_due = u32::from(was_up && !link.told);
            let notes = link.notes_mut();
            notes.suspicion.left(now, was_up, self.config.me > id);
            notes.downs_due += downs_due;
        }
        link.state = if returns { State::Left } else { State::Dead };
        // Whoever gave it up has told why.
        let (remote_knew, is_told) = (link.told, link.closing);
        (link.told, link.closing, link.notices) = (false, false, 0);
        for order in unsent {
            if let Order::Packet { number, packet, .. } = order
                && !is_notice(&packet)
                && let Some(entry) = link.tx.entry(number)
            {
                entry.cargo = Cargo::Packet(Some(packet));
            }
        }
        let lost: Vec<InFlight> = link.tx.take_all().collect();
        self.rails[rail.index()].counters.left += u64::from(returns && was_up);
        peer.derive_way(&self.rails);
        let is_last = !peer.links.iter().any(Link::is_there);
        let others_left = peer.left().any(|link| link.rail != rail && link.was_up());
        if !was_up {
            peer.failover.unopened.push(String::from(why));
        }
        if is_last && (leaving || !others_left) {
            let why = match leaving {
                true => format!("peer {} has left the job", id.0),
                false if was_up => String::from(why),
                false => peer.failover.unopened.join("; "),
            };
            return self.fail_peer(id, &why);
        }
        // Where it may be opened again, each side hears of the other once for each time that it was open.
        let tells = if returns { was_up } else { !remote_knew };
        if tells && !leaving {
            peer.control(&Frame::LinkDown(LinkDown { rail: rail.0 }));
        }
        if was_up && !remote_knew && !leaving && !is_told && !is_last {
            peer.failover.unsaid.push(format!("{why}; the other rails to peer {} carry its traffic", id.0));
        }
        if is_last {
            self.wait_for(now, rail, id, why);
        }
        self.move_over(rail, id, lost, returns);
        if remote_knew {
            self.end_unknown(id, rail);
        }
        if self.has_useless_grant(id) {
            return self.close_violator(id, NO_KEY);
        }
        self.open_links(id);
        self.make_ready(id);
    }

    /// The last link to a peer is lost, and others that were left may still carry it: they are tried now.
    #[cold]
    fn wait_for(&mut self, now: Instant, rail: RailId, id: PeerId, why: &str) {
        let wait = self.config.return_within;
        let Some(peer) = self.peer_mut(id) else { return };
        peer.failover.lost = Some(Lost { until: now + wait, why: String::from(why) });
        let ms = wait.as_ns() / 1_000_000;
        self.tell(rail, id, &format!("{why}; no rail is left to it, and each is tried for {ms} ms"));
        self.observers.watched.look_now();
    }

    /// What a rail was given after it had lost a link, before it could say so. The entries went with the
    /// link: chunks were put back then, but the packets were with the rail.
    #[cold]
    fn on_late(&mut self, rail: RailId, id: PeerId, unsent: Vec<Order>) {
        if self.peer(id).is_none_or(Peer::is_gone) {
            return;
        }
        for order in unsent {
            if let Order::Packet { number, packet, .. } = order
                && !is_notice(&packet)
            {
                self.replay(rail, id, number, packet);
                self.end_late(rail, id, number);
            }
        }
        self.make_ready(id);
    }

    /// A peer that has lost a link has sent something: if it was no goodbye, the user gets a notice. A
    /// peer that ends closes its links one after the other, and the first may be seen before the goodbye on
    /// another. If this process leaves too, that concerns nobody.
    #[cold]
    pub(crate) fn tell_unsaid(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        let unsaid = core::mem::take(&mut peer.failover.unsaid);
        if peer.standing == Standing::Here && !self.is_leaving {
            self.notices.extend(unsaid.into_iter().map(|text| Notice {
                peer: id,
                text,
                kind: NoticeKind::Trouble,
            }));
        }
    }

    /// A packet that came back late has been copied: messages whose data it referred to have left.
    fn end_late(&mut self, rail: RailId, id: PeerId, number: u32) {
        let Some(peer) = self.peer_mut(id) else { return };
        let requests = peer.failover.take_late(rail, number);
        requests.into_iter().for_each(|request| self.entry_left(None, request));
    }

    /// What a dead link held, and what was meant for it, goes over the other links.
    /// If it may return the peer has to know of each of its numbers.
    fn move_over(&mut self, rail: RailId, id: PeerId, lost: Vec<InFlight>, returns: bool) {
        if let Some(prepared) = self.rails[rail.index()].prepared.take_if(|prepared| prepared.to == id) {
            let Built { packet, staged, .. } = prepared.built;
            self.end_staged(None, &staged);
            self.resubmit(id, frames_of(packet));
        }
        let survivor = self.peer(id).and_then(|p| p.links.iter().find(|l| l.is_there())).map(|l| l.rail);
        for entry in lost {
            let late = matches!(entry.cargo, Cargo::Packet(None)) && entry.at_rail && !entry.acked;
            let late = late && !entry.in_place.is_empty();
            match entry.cargo {
                Cargo::Packet(Some(packet)) if !entry.acked => self.replay(rail, id, entry.number, packet),
                // The peer has it, or the rail will give it back with what it was given too late.
                Cargo::Packet(_) => {}
                Cargo::Chunk(chunk) => {
                    self.put_back(id, chunk, entry.at_rail, entry.acked);
                    if returns && !entry.acked {
                        self.resubmit_as(rail, id, entry.number, &[]);
                    }
                }
            }
            match self.peer_mut(id) {
                // The rail may still refer to their memory.
                Some(peer) if late => {
                    let late = LatePacket { rail, number: entry.number, requests: entry.in_place };
                    peer.failover.late.push(late);
                }
                _ => entry.in_place.into_iter().for_each(|request| self.entry_left(None, request)),
            }
            if let Some(survivor) = survivor {
                let counters = &mut self.rails[survivor.index()].counters;
                counters.replayed += 1;
                counters.again_bytes += if entry.acked { 0 } else { entry.len };
            }
        }
        if let Some(peer) = self.peer_mut(id) {
            peer.window.release(rail);
            peer.bodies.iter_mut().for_each(|body| body.release(rail));
        }
        if returns {
            return;
        }
        self.regions_lose_rail(rail, id);
    }

    /// A packet of a dead link goes over another one, under the number that it had.
    fn replay(&mut self, rail: RailId, id: PeerId, number: u32, packet: Packet) {
        let all = frames_of(packet);
        if !frames(&all).any(|frame| matches!(frame, Ok(Frame::Replay(_)))) {
            return self.resubmit_as(rail, id, number, &all);
        }
        // An order that was sent again already keeps the number that it had first.
        let mut own = Vec::new();
        for frame in frames(&all).flatten() {
            match frame {
                Frame::Replay(_) => self.resubmit(id, frame.to_vec()),
                frame => frame.encode(&mut own),
            }
        }
        self.resubmit_as(rail, id, number, &own);
    }

    fn resubmit_as(&mut self, rail: RailId, id: PeerId, number: u32, frames: &[u8]) {
        self.resubmit(id, Frame::Replay(Replay { rail: rail.0, number, frames }).to_vec());
    }

    fn resubmit(&mut self, id: PeerId, frames: Vec<u8>) {
        if let Some(peer) = self.peer_mut(id) {
            peer.window.submit(None, Entry::control(frames));
        }
    }

    /// A chunk that may be lost goes back to what is to be sent.
    fn put_back(&mut self, id: PeerId, chunk: ChunkCargo, at_rail: bool, acked: bool) {
        let ChunkCargo { request, region, offset, from, .. } = chunk;
        let Some(Request::Large(send)) = self.requests.get_mut(request.0) else { return };
        send.at_rails -= u32::from(at_rail);
        let current = send.grant().is_some_and(|grant| grant.region == region);
        let (needed, priority) = (current && !send.has_landed() && !acked, send.hints.priority);
        send.has_body |= needed;
        let Some(peer) = self.peers.get_mut(id) else { return };
        if needed {
            match peer.bodies.iter_mut().find(|body| body.request == request) {
                Some(body) => body.put_back(offset, from.len()),
                None => {
                    let mut body = Body::rest(request, priority);
                    body.put_back(offset, from.len());
                    peer.bodies.push_back(body);
                }
            }
        }
        self.consider_sent(request);
    }

    /// The peer is gone: every request that needs it ends with an error, and the user gets a notice unless
    /// it has left.
    pub(crate) fn fail_peer(&mut self, id: PeerId, why: &str) {
        if self.end_peer(id, why) {
            self.notices.push_back(Notice { peer: id, text: String::from(why), kind: NoticeKind::End });
        }
    }

    /// The peer is gone. Returns whether that is news, and no end that the peer has announced.
    fn end_peer(&mut self, id: PeerId, why: &str) -> bool {
        let Some(peer) = self.peers.get_mut(id).filter(|peer| !peer.is_gone()) else { return false };
        let leaving = peer.standing == Standing::Leaving;
        peer.standing = Standing::Gone(Arc::from(why));
        peer.window.clear();
        peer.bodies.clear();
        peer.states = PeerStates::default();
        let mut closed = Vec::new();
        for link in peer.links.iter_mut().filter(|link| link.state != State::Dead) {
            let _ = link.tx.take_all().count();
            link.state = State::Dead;
            closed.push(link.rail);
        }
        closed.into_iter().for_each(|rail| self.close_link(rail, id));
        for rail in &mut self.rails {
            rail.prepared.take_if(|prepared| prepared.to == id);
            rail.accesses.retain(|access| access.to != id);
        }
        if !leaving {
            self.failed.push(id);
        }
        // Messages that were only announced cannot come any more; those that are here stay deliverable.
        let regions = &self.regions;
        self.receives.matching.forget_requests(id, |message, stored| is_here(regions, message, stored));
        self.forget_claims(id);
        self.forget_blocks(id);
        for request in self.requests_of(id) {
            self.end_with_peer(request, id);
        }
        self.forget_stored(id);
        !leaving
    }

    /// Requests that cannot end without this peer, oldest places first.
    fn requests_of(&self, id: PeerId) -> Vec<RequestId> {
        let needs = |request: &Request| match request {
            Request::Eager(eager) => eager.envelope.peer == id,
            Request::Large(send) => send.envelope.peer == id,
            Request::Recv(recv) => {
                let region = recv.region.and_then(|region| self.regions.get(region.0));
                region.is_some_and(|region| region.from == id) || recv.from == Source::Peer(id)
            }
            Request::OneSided(access) => access.envelope.peer == id,
            Request::Reading(reading) => reading.envelope.peer == id,
            Request::Ended(_) => false,
        };
        self.requests_that(needs)
    }

    /// Requests of this kind, oldest places first.
    pub(crate) fn requests_that(&self, are: impl Fn(&Request) -> bool) -> Vec<RequestId> {
        let mut found: Vec<_> =
            self.requests.iter().filter(|(_, r)| are(r)).map(|(n, _)| RequestId(n)).collect();
        found.sort_unstable_by_key(|request| request.0 as u32);
        found
    }

    fn end_with_peer(&mut self, request: RequestId, id: PeerId) {
        if let Some(&Request::Reading(Reading { recv, .. })) = self.requests.get(request.0) {
            self.requests.remove(request.0);
            return self.fail_request(recv, Error::PeerLost(id));
        }
        if let Some(Request::Recv(recv)) = self.requests.get(request.0) {
            let (posted, region) = (recv.posted, recv.region);
            if let Some(place) = posted {
                self.receives.matching.retract(place);
            }
            if let Some(region) = region {
                self.close_region(region);
            }
        }
        self.fail_request(request, Error::PeerLost(id));
    }
}

impl Inspect<'_> {
    /// Whether anything still has to leave: windows, bodies, orders that rails hold, and packets that a
    /// lossy rail may have to send again.
    pub fn is_drained(self) -> bool {
        self.0.rails.iter().all(|rail| rail.prepared.is_none())
            && self.0.peers.iter().all(|peer| {
                let sent = |link: &Link| match link.lossy {
                    true => link.tx.len() == 0 || !link.is_up(),
                    false => link.tx.at_rail() == 0,
                };
                peer.has_nothing() && peer.links.iter().all(sent)
            })
    }
}

impl Setup<'_> {
    /// Declares a peer failed that the layer above knows to be dead: every request that needs it ends
    /// with an error, and nothing that it still sends is taken.
    pub fn declare_failed(&mut self, id: PeerId, why: &str) {
        self.0.meet(id);
        self.0.end_peer(id, why);
    }

    /// Gives up a link for good, over which nothing comes any more; false: it is the last one to the peer,
    /// and stays.
    pub fn abandon(&mut self, id: PeerId, rail: RailId, why: &str) -> bool {
        self.0.meet(id);
        let is_other = |link: &Link| link.rail != rail && link.is_there();
        if !self.0.peer(id).is_some_and(|peer| peer.links.iter().any(is_other)) {
            return false;
        }
        let link = self.0.peers.link_mut(id, rail).filter(|link| link.is_there());
        if let Some(link) = link {
            link.notes_mut().is_abandoned = true;
            self.0.give_up(rail, id, why);
        }
        true
    }
}
