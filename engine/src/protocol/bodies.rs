//! Splits bodies over rails, cuts them into chunks or parts, and splits again when transfers differ from the
//! prediction. A body belongs to a large message that its receiver has granted, or to an eager message in
//! parts.

use crate::clock::{Duration, Instant};

use crate::collect::window::Entry;
use crate::engine::Engine;
use crate::engine::depart::{Load, book};
use crate::engine::peer::{Peer, has_enough, revisable_chunk_len, view};
use crate::engine::way::Way;
use crate::observe::receipt::Receipts;
use crate::packet::{Key, PeerId, RailId, RegionId, RequestId};
use crate::protocol::{Protocol, Request, parts};
use crate::schedule::body::Body;
use crate::schedule::strategy::{RailView, Shares};
use crate::schedule::wire;
use crate::slab::Slab;
use crate::transfer::driver::Order;
use crate::transfer::link::Link;
use crate::transfer::rail::{Rail, busy_until};
use crate::transfer::retention::{Cargo, ChunkCargo};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use nmad_wire::ChunkHeader;

/// Bodies of one peer that are split ahead: enough to keep rails busy for much longer than a decision
/// takes. Each chunk examines no more bodies, however many messages wait.
const LOOKAHEAD: usize = 64;
/// Shortest time between two decisions about the rest of a body.
const PAUSE: Duration = Duration::from_us(20);

/// A piece of a body for one rail.
enum Piece {
    Chunk(ChunkCargo),
    /// A part of an eager message, as entries of a packet; its length in bytes.
    Part(RequestId, Vec<Entry>, u64),
}

impl Engine {
    /// Returns the next piece of a body for this rail.
    pub(crate) fn piece_for(&mut self, now: Instant, rail: RailId, id: PeerId) -> Option<Order> {
        let peer = self.peers.get_mut(id)?;
        // While one rail is measured, it alone carries pushed chunks, too.
        if peer.bodies.is_empty() || peer.only.is_some_and(|only| only != rail) {
            return None;
        }
        decide(now, peer, &self.rails, &mut self.requests, self.observers.receipts.as_deref_mut());
        let link = peer.link(rail)?;
        let mut max = self.rails[rail.index()].limits.chunk.min(self.config.chunk);
        let revises = peer.revises();
        if revises {
            if has_enough(link) {
                return None;
            }
            max = max.min(revisable_chunk_len(link));
        }
        if link.lossy {
            max = max.min(link.congestion.order_max());
        }
        let limits = Limits { remote: link.remote?, max, longest: peer.longest_eager() as u64 };
        let Peer { bodies, links, way, .. } = peer;
        let is_first = |request: &Request, len| {
            let usable = || usable(links, &self.rails, way, request, now);
            is_first(now, rail, links, &self.rails) && is_best_way(now, rail, len, usable())
        };
        let piece = cut(bodies, &mut self.requests, rail, &is_first, limits);
        if piece.is_none() && revises && revise(now, peer, &self.rails, &self.requests) {
            return self.piece_for(now, rail, id);
        }
        match piece? {
            Piece::Chunk(cargo) => Some(self.launch_chunk(now, rail, id, cargo)),
            Piece::Part(request, entries, len) => {
                if let Some(receipts) = &mut self.observers.receipts {
                    receipts.carried(request, rail, len);
                }
                let mut builder = self.builder(rail, id, true)?;
                entries.into_iter().for_each(|entry| builder.push(entry));
                Some(self.launch(now, rail, id, builder.finish()))
            }
        }
    }

    fn launch_chunk(&mut self, now: Instant, rail: RailId, id: PeerId, cargo: ChunkCargo) -> Order {
        let is_learning = self.peer(id).is_some_and(|peer| peer.learning.is_active);
        if is_learning && cargo.offset == 0 {
            self.time_large(now, rail, id, cargo.request);
        }
        let peer = self.peers.get_mut(id).expect("a chunk was cut for it");
        if peer.way.parallel_min < u64::MAX {
            self.other_cores.cores.ask();
        }
        let link = peer.link_mut(rail).expect("a chunk was cut for it");
        let number = link.tx.next_number();
        let ack = link.rx.below();
        let ChunkCargo { region, key, offset, .. } = cargo;
        let from = cargo.from.clone();
        if let Some(receipts) = &mut self.observers.receipts {
            receipts.carried(cargo.request, rail, from.len());
        }
        let (len, kept) = (from.len(), Some((Cargo::Chunk(cargo), Vec::new())));
        let load = Load { entries: None, len, busy: len + ChunkHeader::LEN as u64, kept };
        book(now, id, link, &mut self.rails[rail.index()], load);
        if !is_learning {
            self.note_chunk(id, rail);
        }
        Order::Chunk { to: id, number, ack, region, key, offset, from }
    }
}

/// Whether no other rail to the peer is idle before this one. A waiting caller asks busy rails, too; such a
/// rail must not take a chunk that another one can carry at once.
fn is_first(now: Instant, rail: RailId, links: &[Link], rails: &[Rail]) -> bool {
    let mine = busy_until(rails, rail, now);
    let accepts = |link: &&Link| link.accepts(rails[link.rail.index()].limits.depth);
    mine <= now || links.iter().filter(accepts).all(|link| mine <= busy_until(rails, link.rail, now))
}

/// Whether no other rail over the same NIC carries `len` bytes earlier.
fn is_best_way(now: Instant, rail: RailId, len: u64, views: Option<Usable<'_>>) -> bool {
    let Some((views, count)) = views else { return true };
    let Some(mine) = views[..count].iter().find(|view| view.rail == rail) else { return true };
    let rivals = views[..count].iter().filter(|view| view.wire == mine.wire);
    rivals.filter(|view| view.rail != rail).all(|view| !wire::leads(now, view, mine, len))
}

/// Limits of the pieces for one rail.
#[derive(Clone, Copy)]
struct Limits {
    /// The peer's index of the rail.
    remote: u8,
    /// Longest chunk in bytes.
    max: u64,
    /// Longest part that fits into a packet, in bytes.
    longest: u64,
}

/// Cuts the next piece for a rail from the first body that has one; also from shares for any rail if
/// `is_first`.
fn cut(
    bodies: &mut VecDeque<Body>,
    requests: &mut Slab<Request>,
    rail: RailId,
    is_first: &dyn Fn(&Request, u64) -> bool,
    Limits { remote, max, longest }: Limits,
) -> Option<Piece> {
    for index in 0..bodies.len().min(LOOKAHEAD) {
        let body = &mut bodies[index];
        let Some(request) = requests.get_mut(body.request.0) else { continue };
        let (max, target) = match request {
            Request::Eager(_) => {
                (parts::longest(body, if body.settled { longest } else { longest.min(max) }), None)
            }
            Request::Large(_) if body.is_pushed() => (u64::MAX, Some((RegionId(body.request.0), Key::PUSH))),
            Request::Large(send) => match send.grant().and_then(|grant| grant.target(remote)) {
                None => continue,
                target => (max, target),
            },
            _ => continue,
        };
        let Some((offset, len)) = body.next_chunk(rail, |len| is_first(request, len), max) else { continue };
        let is_over = body.is_empty();
        let piece = match (request, target) {
            (Request::Eager(send), _) => Piece::Part(body.request, parts::take(body, send, offset, len), len),
            (Request::Large(send), Some((region, key))) => {
                send.at_rails += 1;
                send.has_body &= !is_over || body.is_pushed();
                let from = send.data.slice(offset, len);
                Piece::Chunk(ChunkCargo { request: body.request, region, key, offset, from })
            }
            _ => continue,
        };
        if is_over {
            bodies.remove(index);
        }
        return Some(piece);
    }
    None
}

/// Views of rails, and their number.
type Usable<'a> = ([RailView<'a>; nmad_wire::MAX_RAILS], usize);

/// Returns the open rails that can carry the body of a request: for a large message those for which the
/// receiver has given a key. A rail that shares its NIC and accepts no order now counts as busy until it has
/// carried its orders.
fn usable<'a>(
    links: &'a [Link],
    rails: &[Rail],
    way: &Way,
    request: &Request,
    now: Instant,
) -> Option<Usable<'a>> {
    let can_carry = |link: &&Link| {
        let key = |remote| match request {
            Request::Large(send) => send.grant().is_some_and(|grant| grant.keys.get(remote).is_some()),
            _ => true,
        };
        link.is_up() && link.remote.is_some_and(key)
    };
    let of = |link: &'a Link| {
        let mut view = view(now, link, rails, way);
        let rail = &rails[link.rail.index()];
        if rail.shares && !link.accepts(rail.limits.depth) {
            view.idle_at = view.idle_at.max(now + link.stall());
        }
        view
    };
    let mut usable = links.iter().filter(can_carry).map(of);
    let mut views = [usable.next()?; nmad_wire::MAX_RAILS];
    let more = views[1..].iter_mut().zip(usable).map(|(place, view)| *place = view).count();
    Some((views, more + 1))
}

/// Lets the strategy split the undecided bodies when a rail asks for a chunk.
fn decide(
    now: Instant,
    peer: &mut Peer,
    rails: &[Rail],
    requests: &mut Slab<Request>,
    mut receipts: Option<&mut Receipts>,
) {
    let Peer { bodies, links, strategies, way, .. } = peer;
    if bodies.iter().take(LOOKAHEAD).all(Body::is_decided) {
        return;
    }
    links.iter_mut().for_each(|link| link.forecast.relax(now));
    let mut assigned = assigned(bodies.iter().take(LOOKAHEAD));
    for body in bodies.iter_mut().take(LOOKAHEAD).filter(|body| !body.is_decided()) {
        let Some(request) = requests.get_mut(body.request.0) else { continue };
        let Some((mut views, count)) = usable(links, rails, way, request, now) else {
            continue;
        };
        let views = &mut views[..count];
        queue(now, views, &assigned);
        let is_open = |rail: RailId| views.iter().any(|view| view.rail == rail);
        let shares = match body.wish().filter(|&rail| is_open(rail)) {
            Some(rail) => Shares::of([(rail, body.remaining())]),
            None => wire::split(strategies.of(body.strategy), now, body.remaining(), views),
        };
        if let Some(receipts) = &mut receipts {
            receipts.now = now;
            let (protocol, message) = match request {
                Request::Large(send) => (send.protocol, (send.envelope, send.blocks())),
                Request::Eager(send) => (Protocol::EagerParts, (send.envelope, (0, 0))),
                _ => continue,
            };
            receipts.decided((body.request, protocol), message, way.eager_max, views, &shares);
        }
        if let Request::Large(send) = request {
            if send.wants_fin {
                send.timing.due = due(now, views, &shares, body.remaining());
            }
            if let (Shares::Fixed(list), None) = (&shares, body.wish()) {
                send.timing.shared = Some((now, body.remaining(), list.len()));
            }
        }
        if let (Shares::Fixed(list), None) = (&shares, body.wish()) {
            body.settled = list.len() == 1 && views.iter().all(|view| view.idle_at <= now);
        }
        body.decide(&shares, is_open);
        views.iter().for_each(|view| assigned[view.rail.index()] += body.assigned_to(view.rail));
    }
}

/// Predicts when a body with these shares arrives.
fn due(now: Instant, views: &[RailView], shares: &Shares, len: u64) -> Instant {
    let finish = |view: &RailView, len| now + Duration::from_ns(view.body_ends_ns(now, len));
    let of =
        |view: &RailView, list: &[(RailId, u64)]| list.iter().find(|share| share.0 == view.rail).map(|s| s.1);
    let ends = match shares {
        Shares::FirstIdle => views.iter().map(|view| finish(view, len)).min(),
        Shares::Fixed(list) => views.iter().filter_map(|view| Some(finish(view, of(view, list)?))).max(),
    };
    ends.unwrap_or(now)
}

/// Returns the bytes assigned to each rail and not yet given to it.
fn assigned<'a>(bodies: impl Iterator<Item = &'a Body>) -> [u64; nmad_wire::MAX_RAILS] {
    let mut assigned = [0; nmad_wire::MAX_RAILS];
    bodies.for_each(|body| body.count_assigned(&mut assigned));
    assigned
}

/// Adds the time of the assigned bytes to the idle times of the rails' wires.
fn queue(now: Instant, views: &mut [RailView], assigned: &[u64; nmad_wire::MAX_RAILS]) {
    for index in 0..views.len() {
        let RailView { rail, wire, forecast, .. } = views[index];
        let ns = forecast.busy_ns(assigned[rail.index()]);
        if ns > 0 {
            let ways = views.iter_mut().filter(|view| view.wire == wire);
            ways.for_each(|view| view.idle_at = view.idle_at.max(now) + Duration::from_ns(ns));
        }
    }
}

/// Splits the data not yet on a rail again, if a body would then be finished clearly earlier; true if any
/// was. Called when a rail has nothing left to send.
#[cold]
fn revise(now: Instant, peer: &mut Peer, rails: &[Rail], requests: &Slab<Request>) -> bool {
    let Peer { bodies, links, strategies, way, .. } = peer;
    let mut revised = false;
    let all = assigned(bodies.iter().take(LOOKAHEAD));
    for body in bodies.iter_mut().take(LOOKAHEAD).filter(|body| body.wish().is_none() && !body.settled) {
        if !body.consider(now, PAUSE) {
            continue;
        }
        let Some(request) = requests.get(body.request.0) else { continue };
        let Some((mut views, count)) = usable(links, rails, way, request, now) else {
            continue;
        };
        let views = &mut views[..count];
        let mut others = all;
        views.iter().for_each(|view| others[view.rail.index()] -= body.assigned_to(view.rail));
        queue(now, views, &others);
        let finish_ns = |view: &RailView, len| match len {
            0 => 0,
            len => view.body_ends_ns(now, len),
        };
        let planned_ns = views.iter().map(|view| finish_ns(view, body.assigned_to(view.rail))).max();
        let strategy = strategies.of(body.strategy);
        if !strategy.revises() {
            continue;
        }
        let shares = wire::split(strategy, now, body.remaining(), views);
        let Shares::Fixed(shares) = shares else { continue };
        let share = |view: &RailView| shares.iter().filter(|s| s.0 == view.rail).map(|s| s.1).sum();
        let possible_ns = views.iter().map(|view| finish_ns(view, share(view))).max();
        if possible_ns < planned_ns.map(|ns| ns - ns / 16) {
            body.recall();
            body.decide(&Shares::Fixed(shares), |rail| views.iter().any(|view| view.rail == rail));
            revised = true;
        }
    }
    revised
}
