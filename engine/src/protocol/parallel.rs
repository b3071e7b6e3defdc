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
use crate::engine::way::Way;
use crate::engine::{Engine, Inspect, Setup};
use crate::packet::{PeerId, RailId};
use crate::profile::sample::Pair;
use crate::protocol::parts::RTS_LEN;
use crate::protocol::{OtherCores, Request, parts};
use crate::schedule::body::Body;
use crate::schedule::preempt::Preempt;
use crate::schedule::split::{Packets, equal_finish, retain};
use crate::schedule::strategy::{RailView, ShareList, Shares};
use crate::transfer::driver::Order;
use crate::transfer::rail::Rail;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use nmad_wire::MAX_RAILS;

/// Other cores that may take work. Their threads and the engine communicate through it without a lock.
#[derive(Debug, Default)]
pub struct Cores {
    ready: AtomicUsize,
    on_call: AtomicUsize,
    asked: AtomicU32,
    asked_to_preempt: AtomicU32,
    gained_ns: AtomicU64,
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

    /// Sets the number of cores that compute and may be preempted.
    pub fn set_on_call(&self, count: usize) {
        self.on_call.store(count, Ordering::Relaxed);
    }

    /// Returns the number of cores that compute and may be preempted.
    pub fn on_call(&self) -> usize {
        self.on_call.load(Ordering::Relaxed)
    }

    /// Returns a counter that changes whenever there is work that is worth the preemption of a core.
    pub fn asked_to_preempt(&self) -> u32 {
        self.asked_to_preempt.load(Ordering::Relaxed)
    }

    /// Returns and resets the predicted gain of the messages for which cores were to be preempted, in
    /// nanoseconds.
    pub fn take_gained_ns(&self) -> u64 {
        self.gained_ns.swap(0, Ordering::Relaxed)
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
    /// Nanoseconds by which it arrives earlier, if a core has to be preempted for that.
    pub(crate) preempted_for_ns: Option<u64>,
}

impl OtherCores {
    /// Returns the length of the shortest message that the cores which are there now could post a part of.
    #[inline]
    pub(crate) fn shortest(&self, way: &Way) -> u64 {
        match (self.cores.ready(), self.cores.on_call()) {
            (0, 0) => u64::MAX,
            (0, _) => way.preempt_min,
            _ => way.parallel_min,
        }
    }

    /// Notes a message that other cores could have posted a part of, if there were some.
    #[inline]
    pub(crate) fn ask(&self, way: &Way, len: u64) {
        if len >= way.parallel_min {
            self.cores.ask();
        }
        if len >= way.preempt_min {
            self.cores.asked_to_preempt.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// Whether cores are ready and the next peer has enough data for them to post a part of it.
    #[inline]
    pub(crate) fn hands_off(&self) -> bool {
        self.other_cores.cores.ready() + self.other_cores.cores.on_call() > 0
            && self.ready.front().is_some_and(|&id| self.is_worth_splitting(id))
    }

    #[cold]
    fn is_worth_splitting(&self, id: PeerId) -> bool {
        let stand_by = self.other_cores.cores.ready() > 0;
        self.peer(id).is_some_and(|peer| {
            let shortest = self.other_cores.shortest(&peer.way);
            let has_chunks = stand_by && !peer.bodies.is_empty();
            shortest < u64::MAX && (peer.window.backlog() as u64 >= shortest || has_chunks)
        })
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
        if pair == Pair::Busy && !self.may_preempt(orders) {
            return false;
        }
        let hand_off_ns = link.forecast.profile().hand_off_ns(pair);
        let len: u64 = orders.iter().map(order_len).sum();
        hand_off_ns.is_some_and(|hand_off_ns| link.forecast.busy_ns(len) >= hand_off_ns)
    }

    /// Whether a core that computes may be preempted to post these orders. Chunks of large messages keep it
    /// for longer than anybody gains by that.
    fn may_preempt(&self, orders: &[Order]) -> bool {
        let is_packet = |order: &Order| matches!(order, Order::Packet { .. });
        let is_wanted = self.other_cores.preempts || self.config.preempt == Preempt::Always;
        is_wanted && orders.iter().all(is_packet)
    }

    /// Called when a rail asks for data and much waits for a peer: splits it if it is a single message,
    /// cores are ready, and it pays.
    #[cold]
    #[inline(never)]
    pub(crate) fn consider_parallel(&mut self, now: Instant, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id) else {
            return;
        };
        self.other_cores.ask(&peer.way, peer.window.backlog() as u64);
        let Some(len) = peer.window.alone().filter(|entry| is_plain(entry)).map(Entry::data_len) else {
            return;
        };
        let Some(parallel) = peer.parallel(&self.rails, (now, len), &self.other_cores) else { return };
        if let Some(gain_ns) = parallel.preempted_for_ns {
            self.other_cores.preempts = true;
            self.other_cores.cores.gained_ns.fetch_add(gain_ns, Ordering::Relaxed);
        }
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
    /// Sets the distances of the cores that may take work to that of the thread that uses the engine now, in
    /// the order in which they get it. Those not named are the remaining ones that stand by, at an unknown
    /// distance, then those on call. The pump calls it before it hands off work.
    pub fn stand_beside(&mut self, mut pairs: impl Iterator<Item = Pair>) {
        let others = &mut self.0.other_cores;
        others.preempts = false;
        let ready = others.cores.ready();
        for (index, place) in others.beside.0.iter_mut().enumerate() {
            let unnamed = if index < ready { Pair::Unknown } else { Pair::Busy };
            *place = pairs.next().unwrap_or(unnamed);
        }
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
        let (cores, beside) = (others.cores.ready() + others.cores.on_call(), &others.beside);
        if len < others.shortest(&self.way) || !self.strategies.usual.parts_eager() {
            return None;
        }
        let is_idle = |view: &RailView| {
            let at = &rails[view.rail.index()];
            let accepts = self.link(view.rail).is_some_and(|link| link.accepts(at.limits.depth));
            view.idle_at <= now && accepts && at.prepared.is_none()
        };
        let (views, count) = self.views(rails, now)?;
        let alone_ns = views[..count].iter().map(|view| view.eager_ends_ns(now, len)).min()?;
        let mut idle = views;
        let count = retain(&mut idle[..count], |_, view| is_idle(view));
        let count = best_of_each_wire(&mut idle[..count], len).min(cores + 1);
        // Fewer rails may be faster if a further one needs a more distant core.
        let over = |rails: usize| {
            let whole = Whole { now, len, alone_ns, preempt: self.fixed.preempt };
            whole.shared(&idle[..rails], &beside.0[..rails - 1])
        };
        let parallel = (2..=count).filter_map(over).min_by_key(|parallel| parallel.predicted_ns)?;
        let longest = self.longest_eager() as u64 - RTS_LEN;
        let fits = parallel.shares.iter().all(|&(_, len)| len <= longest);
        (fits && parallel.predicted_ns < alone_ns).then_some(parallel)
    }

    /// Returns the length of the shortest message that is worth using a further core, while all rails are
    /// idle: one of this kind, or the nearest idle one.
    pub(crate) fn shortest_parallel(&self, rails: &[Rail], core: Option<Pair>) -> u64 {
        self.measured_parallel_min(rails, core).unwrap_or(u64::MAX)
    }

    fn measured_parallel_min(&self, rails: &[Rail], core: Option<Pair>) -> Option<u64> {
        let start = Instant::default();
        let (mut views, count) = self.views(rails, start)?;
        views.iter_mut().for_each(|view| view.idle_at = start);
        let longest = self.way.eager_max.min(self.longest_eager()) as u64;
        let count = best_of_each_wire(&mut views[..count], longest);
        let views = &views[..count];
        let pays = |len: u64| {
            let alone_ns = views.iter().map(|view| view.forecast.eager_ns(len)).min().unwrap_or(0);
            let whole = Whole { now: start, len, alone_ns, preempt: self.fixed.preempt };
            let parallel = if let Some(core) = core {
                whole.shared(&views[..views.len().min(2)], &[core])
            } else {
                let least = |view: &RailView| view.forecast.profile().least_hand_off_ns();
                views.iter().find_map(least).and_then(|hand_off_ns| whole.finish(views, hand_off_ns))
            };
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

/// A message that may be split, and what it takes as a whole.
struct Whole {
    now: Instant,
    len: u64,
    /// Nanoseconds over the best rail alone.
    alone_ns: u64,
    preempt: Preempt,
}

impl Whole {
    /// Solves equation (1) over idle rails, with cores of these distances, the nearest first; `None` if fewer
    /// than two rails take part, hand-offs were not measured, or no core may be preempted for it.
    fn shared(&self, idle: &[RailView], cores: &[Pair]) -> Option<Parallel> {
        let furthest = *cores.last()?;
        let hand_off_ns = idle.iter().find_map(|view| view.forecast.profile().hand_off_ns(furthest))?;
        let parallel = self.finish(idle, hand_off_ns)?;
        let busy = cores.iter().filter(|&&core| core == Pair::Busy).count();
        if busy == 0 {
            return Some(parallel);
        }
        let gain_ns = self.alone_ns.saturating_sub(parallel.predicted_ns);
        let pays = match self.preempt {
            Preempt::Off => false,
            Preempt::Auto => gain_ns > lost_ns(&parallel.shares, idle, busy, hand_off_ns),
            Preempt::Always => gain_ns > 0,
        };
        pays.then_some(Parallel { preempted_for_ns: Some(gain_ns), ..parallel })
    }

    /// Solves equation (1) with this hand-off time.
    fn finish(&self, idle: &[RailView], hand_off_ns: u64) -> Option<Parallel> {
        let (shares, finish_ns) = equal_finish::<Packets>(self.now, self.len, idle);
        let predicted_ns = hand_off_ns.saturating_add(finish_ns);
        (shares.len() > 1).then_some(Parallel { shares, predicted_ns, preempted_for_ns: None })
    }
}

/// Returns the nanoseconds that the threads of `busy` cores lose when these post the dearest shares: each
/// switches to the posting thread and back, which the hand-off includes, and waits while it posts.
fn lost_ns(shares: &ShareList, idle: &[RailView], busy: usize, hand_off_ns: u64) -> u64 {
    let post_ns = |(rail, len)| idle.iter().find(|view| view.rail == rail)?.forecast.core_ns(len).into();
    let mut posts_ns = [0; MAX_RAILS];
    let count = shares.iter().filter_map(|&(rail, len)| post_ns((rail, len))).zip(&mut posts_ns);
    let count = count.map(|(ns, place)| *place = ns).count();
    posts_ns[..count].sort_unstable_by(|a, b| b.cmp(a));
    posts_ns[..count.min(busy)].iter().map(|ns: &u64| ns.saturating_add(hand_off_ns)).sum()
}

/// Sorts by the time for `len` bytes and keeps the first rail of each wire; returns their number.
fn best_of_each_wire(views: &mut [RailView], len: u64) -> usize {
    views.sort_by_key(|view| (view.forecast.eager_ns(len), view.rail));
    retain(views, |kept, view| kept.iter().all(|other| other.wire != view.wire))
}
