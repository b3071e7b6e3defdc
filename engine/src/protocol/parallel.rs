//! Parallel submission: several cores post over several rails at once (P3 section III-B).
//!
//! One core writes the packets of several rails one after the other, which takes longer than one rail (P3
//! figure 3). If other cores are ready, an eager message is split over min(idle rails, cores) rails so that
//! all parts are predicted to arrive at the same time, if that and the hand-off to another core take less
//! time than the best rail alone: equation (1) of P3, T = T_O + max(T_D(share of each rail)). T_O is the
//! hand-off time that the profiles have measured for the caller's core and the furthest core that takes
//! part. Each rail carries one part ([`crate::protocol::parts`]); the pump lets other cores post all parts
//! but the first one.

use crate::clock::Instant;
use crate::collect::window::{Entry, Head};
use crate::engine::peer::{Peer, view_of_any};
use crate::engine::{Engine, Inspect, Setup};
use crate::packet::{PeerId, RailId};
use crate::profile::sample::Pair;
use crate::protocol::parts::RTS_LEN;
use crate::protocol::{OtherCores, Request, parts};
use crate::schedule::body::Body;
use crate::schedule::split::{Packets, equal_finish, retain};
use crate::schedule::strategy::{RailView, ShareList, Shares};
use crate::transfer::driver::Order;
use crate::transfer::rail::Rail;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use nmad_wire::MAX_RAILS;

/// Other cores that may take work. Their threads and the engine communicate through it without a lock.
#[derive(Debug, Default)]
pub struct Cores {
    ready: AtomicUsize,
    asked: AtomicU32,
}

impl Cores {
    /// Adds a core that is ready to post orders.
    pub fn enter(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a core that was ready.
    pub fn leave(&self) {
        self.ready.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the number of ready cores.
    #[inline]
    pub fn ready(&self) -> usize {
        self.ready.load(Ordering::Relaxed)
    }

    /// Returns a counter that changes whenever there is work that other ready cores could share.
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Signals work that other cores could share.
    pub fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }
}

/// Distances of the ready cores to the caller's, the nearest first, as far as known.
#[derive(Debug)]
pub(crate) struct Beside([Pair; MAX_RAILS]);

impl Default for Beside {
    fn default() -> Self {
        Beside([Pair::Unknown; MAX_RAILS])
    }
}

/// The split of an eager message over rails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parallel {
    pub(crate) shares: ShareList,
    /// Nanoseconds until its arrival, including the hand-off.
    pub(crate) predicted_ns: u64,
}

impl Engine {
    /// Whether cores are ready and the next peer has enough data for them to post a part of it.
    #[inline]
    pub(crate) fn hands_off(&self) -> bool {
        self.other_cores.cores.ready() > 0
            && self.ready.front().is_some_and(|&id| self.is_worth_splitting(id))
    }

    #[cold]
    fn is_worth_splitting(&self, id: PeerId) -> bool {
        let is_worth_splitting =
            |peer: &Peer| peer.window.backlog() as u64 >= peer.way.parallel_min || !peer.bodies.is_empty();
        self.peer(id).is_some_and(|peer| peer.way.parallel_min < u64::MAX && is_worth_splitting(peer))
    }

    /// Whether a rail needs longer for these orders than the hand-off to another core takes, after `handed`
    /// cores got orders.
    pub(crate) fn is_worth_a_core(&self, rail: RailId, orders: &[Order], handed: usize) -> bool {
        let to = orders.iter().find_map(|order| match order {
            Order::Packet { to, .. } | Order::Chunk { to, .. } => Some(*to),
            _ => None,
        });
        let Some(link) = to.and_then(|to| self.peer(to)?.link(rail)) else { return false };
        let pair = self.other_cores.beside.0.get(handed).copied().unwrap_or(Pair::Unknown);
        let hand_off_ns = link.forecast.profile().hand_off_ns(pair);
        let len: u64 = orders.iter().map(order_len).sum();
        hand_off_ns.is_some_and(|hand_off_ns| link.forecast.busy_ns(len) >= hand_off_ns)
    }

    /// Called when a rail asks for data and much waits for a peer: splits it if it is a single message,
    /// cores are ready, and it pays.
    #[cold]
    #[inline(never)]
    pub(crate) fn consider_parallel(&mut self, now: Instant, id: PeerId) {
        self.other_cores.cores.ask();
        let Some(peer) = self.peers.get_mut(id) else {
            return;
        };
        let Some(len) = peer.window.alone().filter(|entry| is_plain(entry)).map(Entry::data_len) else {
            return;
        };
        let Some(parallel) = peer.parallel(&self.rails, (now, len), &self.other_cores) else { return };
        let first = peer.window.take_alone();
        let Some(Entry { head: Head::Eager(eager), data, request, hints, .. }) = first else { return };
        let Some(Request::Eager(send)) = self.requests.get_mut(request.0) else { return };
        let envelope = send.envelope;
        let mut body = Body::in_parts(request, parts::names(eager.flags, &envelope, request), data, hints);
        body.decide(&Shares::Fixed(parallel.shares), |_| true);
        // Each core posts its share as one packet.
        body.settled = true;
        peer.bodies.push_front(body);
        self.note_parallel(now, (request, envelope), &parallel);
    }
}

impl<'a> Inspect<'a> {
    /// Returns the other cores; none is ready at first.
    pub fn cores(self) -> &'a Arc<Cores> {
        &self.0.other_cores.cores
    }
}

impl Setup<'_> {
    /// Sets the distances of the ready cores to that of the thread that uses the engine now, the nearest
    /// first. The pump calls it before it hands off work.
    pub fn stand_beside(&mut self, pairs: impl Iterator<Item = Pair>) {
        let pairs = pairs.chain(core::iter::repeat(Pair::Unknown));
        self.0.other_cores.beside.0.iter_mut().zip(pairs).for_each(|(place, pair)| *place = pair);
    }
}

/// Whether it is an eager message whose hints allow any rail and order.
fn is_plain(entry: &Entry) -> bool {
    matches!(entry.head, Head::Eager(_)) && entry.hints.are_plain() && !entry.hints.depends
}

/// Returns the bytes of an order.
fn order_len(order: &Order) -> u64 {
    match order {
        Order::Packet { packet, .. } => packet.len() as u64,
        Order::Chunk { from, .. } => from.len(),
        _ => 0,
    }
}

impl Peer {
    /// Returns the split of a message of `len` bytes over idle rails with the ready cores; `None`: it does
    /// not pay, or the strategy puts each message into one packet.
    pub(crate) fn parallel(
        &self,
        rails: &[Rail],
        (now, len): (Instant, u64),
        others: &OtherCores,
    ) -> Option<Parallel> {
        let (cores, beside) = (others.cores.ready(), &others.beside);
        if len < self.way.parallel_min || cores == 0 || !self.strategies.usual.parts_eager() {
            return None;
        }
        let is_idle = |view: &RailView| {
            let at = &rails[view.rail.index()];
            let accepts = self.link(view.rail).is_some_and(|link| link.accepts(at.limits.depth));
            view.idle_at <= now && accepts && at.prepared.is_none()
        };
        let (views, count) = self.views(rails, now)?;
        let arrives_ns = |view: &RailView| view.idle_at.since(now).as_ns() + view.forecast.eager_ns(len);
        let alone_ns = views[..count].iter().map(arrives_ns).min()?;
        let mut idle = views;
        let count = retain(&mut idle[..count], |_, view| is_idle(view));
        let count = best_of_each_wire(&mut idle[..count], len).min(cores + 1);
        // Fewer rails may be faster if a further one needs a more distant core.
        let over = |rails: usize| shared(now, len, &idle[..rails], beside.0[rails - 2]);
        let parallel = (2..=count).filter_map(over).min_by_key(|parallel| parallel.predicted_ns)?;
        let longest = self.longest_eager() as u64 - RTS_LEN;
        let fits = parallel.shares.iter().all(|&(_, len)| len <= longest);
        (fits && parallel.predicted_ns < alone_ns).then_some(parallel)
    }

    /// Returns the length of the shortest message that is worth using the two nearest cores while all rails
    /// are idle.
    pub(crate) fn shortest_parallel(&self, rails: &[Rail]) -> u64 {
        self.measured_parallel_min(rails).unwrap_or(u64::MAX)
    }

    fn measured_parallel_min(&self, rails: &[Rail]) -> Option<u64> {
        let start = Instant::default();
        let (mut views, count) = self.views(rails, start)?;
        views.iter_mut().for_each(|view| view.idle_at = start);
        let longest = self.way.eager_max.min(self.longest_eager()) as u64;
        let count = best_of_each_wire(&mut views[..count], longest);
        let views = &views[..count];
        let pays = |len: u64| {
            let alone_ns = views.iter().map(|view| view.forecast.eager_ns(len)).min().unwrap_or(0);
            let hand_off_ns = views.iter().find_map(|view| view.forecast.profile().least_hand_off_ns());
            let parallel = hand_off_ns.and_then(|hand_off_ns| finish(start, len, views, hand_off_ns));
            parallel.is_some_and(|parallel| parallel.predicted_ns < alone_ns)
        };
        if !pays(longest) {
            return None;
        }
        let (mut below, mut above) = (0, longest);
        while above - below > 1 {
            let middle = (below + above) / 2;
            if pays(middle) { above = middle } else { below = middle }
        }
        Some(above)
    }

    /// Returns the open rails in use; `None` if there is only one.
    fn views(&self, rails: &[Rail], now: Instant) -> Option<([RailView<'_>; MAX_RAILS], usize)> {
        let open = || self.used().filter(|(_, link)| link.is_up());
        let mut all = open().map(|(_, link)| view_of_any(now, link, rails, &self.way));
        let mut views = [all.next()?; MAX_RAILS];
        let further = views[1..].iter_mut().zip(all).map(|(place, view)| *place = view).count();
        (further > 0).then_some((views, further + 1))
    }
}

/// Solves equation (1) over idle rails, with the distance of the furthest core; `None` if fewer than two
/// rails take part, or hand-offs were not measured.
fn shared(now: Instant, len: u64, idle: &[RailView], furthest: Pair) -> Option<Parallel> {
    let hand_off_ns = idle.iter().find_map(|view| view.forecast.profile().hand_off_ns(furthest))?;
    finish(now, len, idle, hand_off_ns)
}

/// Solves equation (1) with this hand-off time.
fn finish(now: Instant, len: u64, idle: &[RailView], hand_off_ns: u64) -> Option<Parallel> {
    let (shares, finish_ns) = equal_finish::<Packets>(now, len, idle);
    (shares.len() > 1).then(|| Parallel { shares, predicted_ns: hand_off_ns.saturating_add(finish_ns) })
}

/// Sorts by the time for `len` bytes and keeps the first rail of each wire; returns their number.
fn best_of_each_wire(views: &mut [RailView], len: u64) -> usize {
    views.sort_by_key(|view| (view.forecast.eager_ns(len), view.rail));
    retain(views, |kept, view| kept.iter().all(|other| other.wire != view.wire))
}
