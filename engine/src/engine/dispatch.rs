//! Window to rail: the next order of an idle rail.

use crate::clock::Instant;
use crate::engine::Engine;
use crate::engine::depart::{book, packet_load};
use crate::engine::peer::{Peer, view, view_of_any};
use crate::packet::{Packet, PeerId, RailId, RequestId, StrategyId};
use crate::profile::threshold::InPlace;
use crate::protocol::Protocol;
use crate::schedule::body::Body;
use crate::schedule::builder::{Bounds, Built, PacketBuilder, seal};
use crate::schedule::feed::Feed;
use crate::schedule::strategy::{RailView, Waiting};
use crate::transfer::driver::Order;
use crate::transfer::link::Link;
use crate::transfer::rail::{Prepared, Rail};

use alloc::vec::Vec;
use nmad_wire::{Ack, Credit, Frame, Header, Kind, begins_eager};

/// Length of a [`Credit`] frame in bytes.
const CREDIT_LEN: usize = 10;

impl Engine {
    /// Whether a rail might get an order now.
    #[inline]
    pub fn has_orders(&mut self, now: Instant) -> bool {
        self.has_orders_for(now, true)
    }

    /// Whether a rail might get an order now; without `urgent`, busy rails do not count.
    #[inline]
    pub(crate) fn has_orders_for(&mut self, now: Instant, urgent: bool) -> bool {
        (now >= self.observers.watched.due_at && self.watch(now))
            || (!self.ready.is_empty() && (urgent || now >= self.busy_until))
            || (!self.timed.is_empty() && self.has_timer(now))
            || (self.prepares && self.rails.iter().any(|rail| rail.prepared.is_some()))
    }

    /// Records that no rail had anything to carry.
    #[inline]
    pub(crate) fn had_nothing(&mut self) {
        let is_alone = self.ready.len() == 1 && self.config.feed != Feed::Prepare;
        let peer = self.ready.front().filter(|_| is_alone).and_then(|&id| self.peer(id));
        let idle_at = |link: &Link| link.is_up().then(|| self.rails[link.rail.index()].idle_at);
        let idle_at = peer.and_then(|peer| peer.links.iter().filter_map(idle_at).min());
        self.busy_until = idle_at.unwrap_or_default();
    }

    /// Returns the next order for `rail`; `None` if it is busy or has nothing to carry. `urgent`: the
    /// caller waits, so the rail's predicted idle time does not count.
    #[inline]
    pub(crate) fn next_order(&mut self, now: Instant, rail: RailId, urgent: bool) -> Option<Order> {
        let idle = urgent || now >= self.rails.get(rail.index())?.idle_at;
        if self.rails[rail.index()].limits.lossy
            && let Some(order) = self.timed_order(now, rail)
        {
            return Some(order);
        }
        if !self.observers.watched.queries.is_empty()
            && let Some(order) = self.query_for(now, rail)
        {
            return Some(order);
        }
        if idle
            && self.rails[rail.index()].prepared.is_some()
            && let Some(order) = self.prepared_order(now, rail)
        {
            return Some(order);
        }
        if self.chooser.is_some() && self.ready.len() > 1 {
            self.choose_peer(now, rail);
        }
        for _ in 0..self.ready.len() {
            let id = *self.ready.front()?;
            let order = self.order_for(now, rail, id, (idle, urgent));
            self.take_turn(id, now);
            if order.is_some() {
                return order;
            }
        }
        None
    }

    /// Lets the strategy of the session choose the peer that is served next.
    #[cold]
    fn choose_peer(&mut self, now: Instant, rail: RailId) {
        let Engine { chooser, ready, peers, .. } = self;
        let Some(chooser) = chooser else { return };
        let waiting = |id: &PeerId| {
            let peer = peers.get(*id)?;
            let granted = peer.bodies.iter().map(Body::remaining).sum();
            let has_link = peer.link(rail).is_some_and(Link::is_up);
            has_link.then_some(Waiting { peer: *id, window: &peer.window, granted })
        };
        let waiting: Vec<Waiting> = ready.iter().filter_map(waiting).collect();
        if waiting.len() < 2 {
            return;
        }
        let chosen = chooser.choose(now, rail, &waiting);
        if let Some(place) = ready.iter().position(|id| Some(*id) == chosen) {
            // The others keep their order.
            let id = ready.remove(place);
            id.into_iter().for_each(|id| ready.push_front(id));
        }
    }

    /// Whether a rail has to open or close something, to access memory of a peer, or to use other limits.
    #[inline]
    pub fn has_errands(&self) -> bool {
        self.has_errands
    }

    /// Takes the lengths from which the rail shall leave data in place, if transfers have corrected them.
    pub(crate) fn take_in_place(&mut self, rail: RailId) -> Option<InPlace> {
        self.rails.get_mut(rail.index())?.in_place.take()
    }

    /// Returns the next link to open or to close on this rail.
    pub(crate) fn next_errand(&mut self, rail: RailId) -> Option<Order> {
        let errand = self.rails.get_mut(rail.index())?.errands.pop_front();
        if matches!(errand, Some(Order::Close { .. })) {
            self.closing -= 1;
        }
        if errand.is_none() {
            self.give_unused();
            self.count_errands();
        }
        errand
    }

    /// Records that posting took the caller's core from `from` to `until`; without `from` it took as long
    /// as last time.
    #[inline]
    pub(crate) fn posted(&mut self, rail: RailId, from: Option<Instant>, until: Instant) {
        if let Some(rail) = self.rails.get_mut(rail.index()) {
            rail.posted(from, until);
        }
        if let Some(receipts) = &mut self.observers.receipts {
            receipts.posted(until);
        }
    }

    /// Moves the peer at the front to the back, or removes it if it has nothing for any rail.
    #[inline]
    fn take_turn(&mut self, id: PeerId, now: Instant) {
        let done =
            self.peer(id).is_none_or(|p| p.has_nothing() && !p.links.iter().any(|l| l.ack_is_due(now)));
        if done {
            self.ready.pop_front();
            if let Some(peer) = self.peer_mut(id) {
                peer.is_ready = false;
            }
        } else if self.ready.len() > 1 {
            self.ready.rotate_left(1);
        }
    }

    #[inline]
    fn order_for(
        &mut self,
        now: Instant,
        rail: RailId,
        id: PeerId,
        (idle, urgent): (bool, bool),
    ) -> Option<Order> {
        let depth = self.rails[rail.index()].limits.depth;
        if self.peer(id).is_some_and(|peer| peer.states.invitations.holds()) {
            self.request_overdue(now, id);
        }
        let peer = self.peers.get(id)?;
        let link = peer.link(rail)?;
        if !link.accepts(depth) || (peer.learning.is_active && now < peer.learning.waits_until) {
            return None;
        }
        let acknowledge = link.ack_is_due(now);
        if idle || self.config.feed.feeds_busy(peer.window.backlog()) || peer.window.prefers_latency() {
            let gathers = !urgent && self.gathers(now, peer);
            if peer.window.backlog() as u64 >= peer.way.parallel_min.min(peer.way.preempt_min) && !gathers {
                self.consider_parallel(now, id);
            }
            let packet = if gathers { None } else { self.packet_for(now, rail, id) };
            let order = packet.or_else(|| self.piece_for(now, rail, id));
            if order.is_some() {
                return order;
            }
        } else if self.config.feed == Feed::Prepare {
            self.prepare(now, rail, id);
        }
        if acknowledge { self.notice_for(rail, id) } else { None }
    }

    /// Whether packets wait although a rail is idle: the core has just posted packets on another rail, and
    /// all rails share its time. Messages submitted meanwhile share a packet, until one is full.
    #[inline]
    fn gathers(&self, now: Instant, peer: &Peer) -> bool {
        peer.links.len() > 1
            && self.rails.iter().any(|rail| rail.is_gathering(now))
            && peer.strategies.usual.gathers()
            && peer.window.backlog() < peer.way.packet_max
            && !peer.window.prefers_latency()
    }

    #[inline]
    fn packet_for(&mut self, now: Instant, rail: RailId, id: PeerId) -> Option<Order> {
        let built = self.build(now, rail, id, true)?;
        Some(self.launch(now, rail, id, built))
    }

    /// Lets the strategy fill a packet.
    #[inline]
    fn build(&mut self, now: Instant, rail: RailId, id: PeerId, may_gather: bool) -> Option<Built> {
        if self.peer(id)?.window.is_empty() {
            return None;
        }
        let mut builder = self.builder(rail, id, may_gather)?;
        let peer = self.peers.get_mut(id)?;
        match peer.window.strategies() {
            None => fill(now, rail, peer, &self.rails, None, &mut builder),
            Some(asked) => fill_by_turns(now, rail, peer, &self.rails, &asked, &mut builder),
        }
        let built = builder.finish();
        if built.entries == 0 {
            self.buffers.push(built.packet);
            self.staged = built.staged;
            return None;
        }
        Some(built)
    }

    /// Begins a packet for a link; `may_gather`: it may refer to user memory.
    #[inline]
    pub(crate) fn builder(&mut self, rail: RailId, id: PeerId, may_gather: bool) -> Option<PacketBuilder> {
        let state = &self.rails[rail.index()];
        let peer = self.peers.get(id)?;
        let gather = if may_gather { state.limits.gather } else { 0 };
        let link = peer.link(rail)?;
        let (in_place_min, block_min, aggregate_max) =
            (link.in_place_min, link.block_min, link.aggregate_max);
        let bounds = Bounds { len: peer.way.packet_max, in_place_min, block_min, aggregate_max, gather };
        let buffer = self.buffers.pop().unwrap_or_default();
        Some(PacketBuilder::new(buffer, bounds, core::mem::take(&mut self.staged)))
    }

    /// Numbers a packet and gives it to the rail.
    #[inline]
    pub(crate) fn launch(&mut self, now: Instant, rail: RailId, id: PeerId, built: Built) -> Order {
        let Built { packet, mut staged, in_place, entries } = built;
        if self.observers.receipts.is_some() {
            self.note_packet(now, rail, id, (&staged, Protocol::Eager));
            self.note_packet(now, rail, id, (&in_place, Protocol::EagerZcopy));
        }
        self.end_staged(Some(now), &staged);
        staged.clear();
        self.staged = staged;
        self.depart(now, rail, id, packet, in_place, entries)
    }

    #[inline]
    pub(crate) fn depart(
        &mut self,
        now: Instant,
        rail: RailId,
        id: PeerId,
        mut packet: Packet,
        in_place: Vec<RequestId>,
        entries: u32,
    ) -> Order {
        let peer = self.peers.get_mut(id).expect("a packet was built for it");
        let limit = peer.way.packet_max + nmad_wire::MAX_RAILS;
        if packet.len() + CREDIT_LEN <= peer.way.packet_max
            && let Some(limit) = peer.credit.next_limit()
        {
            Frame::Credit(Credit { limit }).encode(&mut packet.bytes);
        }
        if peer.learning.is_active && entries == 1 && begins_eager(&packet.bytes[Header::LEN..]) {
            let load = (packet.len(), !packet.in_place.is_empty());
            let ask = peer.time_packet(now, (rail, &self.rails[rail.index()]), load);
            ask.iter().for_each(|ask| ask.encode(&mut packet.bytes));
        }
        let link = peer.link_mut(rail).expect("a packet was built for it");
        if link.rx.beyond() != 0 && packet.len() < limit {
            Frame::Ack(Ack { beyond: link.rx.beyond() }).encode(&mut packet.bytes);
        }
        let number = link.tx.next_number();
        seal(&mut packet, Kind::Packet, number, link.rx.below());
        book(now, id, link, &mut self.rails[rail.index()], packet_load(&packet, entries, in_place));
        self.note_number(id, number);
        Order::Packet { to: id, number, packet }
    }

    /// Completes messages for their sender whose data was copied into a packet.
    #[inline]
    pub(crate) fn end_staged(&mut self, now: Option<Instant>, staged: &[RequestId]) {
        for &request in staged {
            self.entry_left(now, request);
        }
    }

    /// Builds one packet in advance for the time when the rail is idle (P1 section 3.2).
    fn prepare(&mut self, now: Instant, rail: RailId, id: PeerId) {
        if self.rails[rail.index()].prepared.is_some() {
            return;
        }
        if let Some(built) = self.build(now, rail, id, false) {
            self.rails[rail.index()].prepared = Some(Prepared { to: id, built });
            self.prepares = true;
        }
    }

    fn prepared_order(&mut self, now: Instant, rail: RailId) -> Option<Order> {
        let depth = self.rails[rail.index()].limits.depth;
        let to = self.rails[rail.index()].prepared.as_ref()?.to;
        if !self.peer(to)?.link(rail)?.accepts(depth) {
            return None;
        }
        let Prepared { to, built } = self.rails[rail.index()].prepared.take()?;
        Some(self.launch(now, rail, to, built))
    }

    /// Makes a packet with only an acknowledgement.
    pub(crate) fn notice_for(&mut self, rail: RailId, id: PeerId) -> Option<Order> {
        let link = self.peers.link_mut(id, rail)?;
        let beyond = link.rx.beyond();
        link.rx.acknowledged();
        self.notice(rail, id, (beyond != 0).then_some(Frame::Ack(Ack { beyond })))
    }

    /// Makes a packet without a number of its own.
    pub(crate) fn notice(&mut self, rail: RailId, id: PeerId, frame: Option<Frame<'_>>) -> Option<Order> {
        let Engine { peers, buffers, rails, .. } = self;
        let link = peers.link_mut(id, rail)?;
        let bounds = Bounds { len: usize::MAX, in_place_min: 0, block_min: 0, aggregate_max: 0, gather: 0 };
        let buffer = buffers.pop().unwrap_or_default();
        let mut packet = PacketBuilder::new(buffer, bounds, Vec::new()).finish().packet;
        frame.iter().for_each(|frame| frame.encode(&mut packet.bytes));
        seal(&mut packet, Kind::Notice, 0, link.rx.below());
        link.notices += 1;
        rails[rail.index()].counters.packets += 1;
        Some(Order::Packet { to: id, number: 0, packet })
    }
}

/// Lets the strategy of a message, or that of the peer, fill a packet.
#[inline]
fn fill(
    now: Instant,
    rail: RailId,
    peer: &mut Peer,
    rails: &[Rail],
    chosen: Option<StrategyId>,
    builder: &mut PacketBuilder,
) {
    let Peer { strategies, window, links, way, .. } = peer;
    let strategy = strategies.of(chosen);
    let Some(link) = links.iter().find(|link| link.rail == rail) else { return };
    let mine = view(now, link, rails, way);
    if links.len() == 1 {
        return strategy.fill(now, &mine, window, builder);
    }
    let mut rivals = [mine; nmad_wire::MAX_RAILS];
    let others = links.iter().filter(|link| link.rail != rail && link.is_up());
    let others = others.map(|link| view_of_any(now, link, rails, way));
    let count = rivals.iter_mut().zip(others).map(|(place, rival)| *place = rival).count();
    strategy.fill(now, &RailView { rivals: &rivals[..count], ..mine }, window, builder);
}

/// Asks the strategies that messages have chosen one after the other, each about its own messages, until
/// one has data for the rail.
#[cold]
fn fill_by_turns(
    now: Instant,
    rail: RailId,
    peer: &mut Peer,
    rails: &[Rail],
    asked: &[Option<StrategyId>],
    builder: &mut PacketBuilder,
) {
    for &strategy in asked {
        peer.window.set_strategy(strategy);
        fill(now, rail, peer, rails, strategy, builder);
        if !builder.is_empty() {
            break;
        }
    }
    peer.window.set_strategy(None);
}

/// Returns the frames of a packet, without its header.
pub(crate) fn frames_of(mut packet: Packet) -> Vec<u8> {
    if !packet.in_place.is_empty() {
        packet.gather();
    }
    packet.bytes.get(nmad_wire::Header::LEN..).map(<[u8]>::to_vec).unwrap_or_default()
}
