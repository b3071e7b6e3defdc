//! Derives the way of a peer: what its links, their profiles and the limits of their rails allow.

use crate::clock::Instant;
use crate::config::Config;
use crate::engine::fixed::Fixed;
use crate::engine::peer::{Peer, view, view_of_any};
use crate::engine::way::{Lane, PushLimits, Way};
use crate::packet::RailId;
use crate::profile::forecast::Forecast;
use crate::profile::sample::Pair;
use crate::profile::threshold::UNEXPECTED_MAX;
use crate::schedule::strategy::{RailView, Shares, Strategy};
use crate::schedule::wire;
use crate::transfer::driver::{Limits, Reads};
use crate::transfer::link::{Link, State};
use crate::transfer::rail::{BANDWIDTH_GUESS, Rail};
use alloc::vec::Vec;
use nmad_wire::{Eager, Header, MAX_RAILS, Replay};

/// Length of the message by which latencies are compared.
const SHORT: u64 = 64;

impl Peer {
    /// Derives the way again after links were added, lost or opened, profiles changed, or the user set
    /// thresholds.
    pub(crate) fn derive_way(&mut self, rails: &[Rail]) {
        self.refresh_forecasts(rails);
        self.way = self.way_of_links(rails);
        for link in &mut self.links {
            link.forecast.staged = self.way.keeps && rails[link.rail.index()].limits.gather == 0;
        }
        // A measurement must not be disturbed by learning.
        self.learning.is_active = self.only.is_none() && (self.learning.is_active || self.is_new());
        self.derive_thresholds();
        self.way.eager_max = self.longest_unasked(rails);
        self.way.read_lens = self.lens_to_read();
        let is_chosen = self.choose(rails, Instant::default(), 0).is_some();
        let below = self.way.eager_max.min(self.longest_eager()) as u64 + 1;
        self.way.at_once_below = if is_chosen { below.min(self.way.read_lens.0) } else { 0 };
        self.way.parallel_min = self.shortest_parallel(rails, None);
        self.way.preempt_min = self.shortest_parallel(rails, Some(Pair::Busy));
    }

    /// Derives the part of the way that follows from the links and the limits of their rails.
    fn way_of_links(&self, rails: &[Rail]) -> Way {
        let limits = |link: &Link| rails[link.rail.index()].limits;
        // A link that was given up may come back, and then the present one may be given up.
        let kept = || self.used().map(|(_, link)| link).chain(self.left());
        let keeps = kept().count() > 1 || kept().any(|link| link.lossy);
        let lone = self.lone().filter(|_| !keeps).map(|(_, link)| limits(link));
        let read = lone.map(|limits| limits.reads).filter(|&reads| reads != Reads::Never);
        let push = lone.filter(|limits| limits.push > 0);
        let alive = || self.links.iter().filter(|link| link.state != State::Dead);
        let shortest = alive().map(|link| limits(link).packet).min().unwrap_or(0);
        let up = || alive().filter(|link| link.state == State::Up);
        let latency = |link: &&Link| match limits(link).latency_ns {
            _ if link.forecast.is_measured() => link.forecast.eager_ns(SHORT),
            0 => u64::MAX,
            known => known,
        };
        let open = self.lone().filter(|(_, link)| link.is_up());
        Way {
            lane: open.map(|(place, link)| Lane { rail: link.rail, place }),
            has_several: self.used().nth(1).is_some(),
            injects: lone.is_some_and(|limits| limits.inject),
            push: push.map(|Limits { push, chunk, .. }| PushLimits { message: push, chunk }),
            read: read.filter(|_| !self.lateness.declines_reads),
            keeps,
            primary: up().next().map_or(self.way.primary, |link| link.rail),
            fastest: up().min_by_key(latency).map_or(self.way.fastest, |link| link.rail),
            packet_max: shortest.saturating_sub(MAX_RAILS * Replay::LEN).max(Header::LEN),
            ..Way::default()
        }
    }

    /// Gives links without a profile nominal forecasts; an unknown bandwidth counts as that of the slowest
    /// other link.
    fn refresh_forecasts(&mut self, rails: &[Rail]) {
        let limits = |link: &Link| rails[link.rail.index()].limits;
        let known = self.links.iter().map(|link| limits(link).bandwidth).filter(|&bandwidth| bandwidth > 0);
        let guess = known.min().unwrap_or(BANDWIDTH_GUESS);
        for link in self.links.iter_mut().filter(|link| !link.forecast.is_measured()) {
            let limits = limits(link);
            link.forecast = match rails[link.rail.index()].profiles.of(self.id) {
                Some(sampled) => sampled.fresh(),
                None if limits.bandwidth > 0 || guess == BANDWIDTH_GUESS => {
                    rails[link.rail.index()].nominal.fresh()
                }
                None => Forecast::nominal(limits.latency_ns, 0, guess),
            };
        }
    }

    /// Derives the thresholds of each link: the user's setting, else the measured one, else a default.
    fn derive_thresholds(&mut self) {
        let Fixed { in_place_min, aggregate_max, .. } = self.fixed;
        let bytes = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        for link in &mut self.links {
            let measured = link.forecast.profile().thresholds();
            let in_place = measured.map_or(Config::IN_PLACE_MIN, |t| bytes(t.in_place_min));
            let aggregate = measured.map_or(usize::MAX, |t| bytes(t.aggregate_max));
            link.in_place_min = in_place_min.unwrap_or(in_place);
            link.block_min = measured.map_or(Config::BLOCK_MIN, |t| bytes(t.block_min));
            link.aggregate_max = aggregate_max.unwrap_or(aggregate);
        }
    }

    /// Returns the length of the longest eager message in bytes.
    fn longest_unasked(&mut self, rails: &[Rail]) -> usize {
        // If the driver injects, all messages that fit into a packet are injected: no other protocol does
        // less work.
        let injected = self.way.injects.then_some(usize::MAX);
        // Messages that fit into no packet were not measured: only the user's setting makes them eager.
        let longest = self.longest_eager();
        if let Some(chosen) = self.fixed.eager_max {
            return chosen;
        }
        let measured = injected.or_else(|| self.measured_unasked(rails));
        measured.unwrap_or(Config::EAGER_MAX).min(longest)
    }

    /// Returns the rendezvous threshold of P4 for all open rails together; `None` if one of them was not
    /// measured. A single rail has its own. Several rails split a message sent by rendezvous, and an eager
    /// one that is longer than a packet. The threshold is the shortest message for which rendezvous, a
    /// handshake and the split body, takes less time than eager data: up to a packet, the best rail and the
    /// copy of the unexpected message; beyond, the same split and the copies on both sides.
    fn measured_unasked(&mut self, rails: &[Rail]) -> Option<usize> {
        let longest = self.longest_eager() as u64;
        let Peer { links, strategies, way, .. } = self;
        let open = || links.iter().filter(|link| link.is_up());
        if !open().all(|link| link.forecast.is_measured()) {
            return None;
        }
        let first = open().next().or(links.iter().find(|link| link.is_there()))?;
        if open().count() <= 1 {
            let thresholds = first.forecast.profile().thresholds()?;
            let is_pushed = way.push.is_some() && thresholds.push_min != u64::MAX;
            let large_min = if is_pushed { thresholds.push_min } else { thresholds.rendezvous_min };
            return Some(large_min.saturating_sub(1) as usize);
        }
        let start = Instant::default();
        let mut views: Vec<RailView> = open().map(|link| view(start, link, rails, way)).collect();
        // Thresholds hold for idle rails.
        views.iter_mut().for_each(|view| view.idle_at = start);
        let memcpy = views.iter().find_map(|view| view.forecast.profile().memcpy());
        let handshake_ns = views.iter().map(|view| view.forecast.profile().handshake_ns()).min()?;
        // Each further rail also opens the receive region, is posted to and polled, which is the work of a
        // short message. For the first rail that is part of the measurement; but if messages may have to be
        // sent again, there is also a Fin.
        let further_ns = views.iter().map(|view| view.forecast.profile().eager().start_ns()).min()?;
        let mut asking_pays = |len: u64| {
            let shares = wire::split(&mut *strategies.usual, start, len, &views);
            let count = if let Shares::Fixed(shares) = &shares { shares.len() as u64 } else { 1 };
            let is_shared = count > 1;
            let handshake_ns = handshake_ns + if is_shared { count * further_ns } else { 0 };
            let body_ns = match shares {
                Shares::FirstIdle => views.iter().map(|view| view.forecast.body_ns(len)).min(),
                Shares::Fixed(shares) => {
                    let of = |view: &RailView| shares.iter().find(|share| share.0 == view.rail);
                    views.iter().filter_map(|view| Some(view.forecast.body_ns(of(view)?.1))).max()
                }
            };
            let body_ns = body_ns.unwrap_or(0);
            let copy_ns = memcpy.map_or(0, |curve| curve.ns(len));
            let eager_ns = views.iter().map(|view| view.forecast.eager_ns(len)).min().unwrap_or(0);
            let eager_ns = match len <= longest {
                // A split must also pay for expected messages, which are not copied again.
                true if is_shared => eager_ns,
                true => eager_ns + copy_ns,
                false => body_ns + 2 * copy_ns,
            };
            handshake_ns + body_ns < eager_ns
        };
        let (mut below, mut above) = (0, UNEXPECTED_MAX);
        while above - below > 1 {
            let middle = (below + above) / 2;
            if asking_pays(middle) { above = middle } else { below = middle }
        }
        Some(below as usize)
    }

    /// Returns the longest data that fits into a packet.
    pub(crate) fn longest_eager(&self) -> usize {
        self.way.packet_max.saturating_sub(Header::LEN + Eager::MAX_LEN)
    }

    /// Iterates over the links that may carry traffic, and their indices.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, &Link)> {
        let used = |link: &Link| self.only.is_none_or(|only| only == link.rail);
        self.links.iter().enumerate().filter(move |(_, link)| link.is_there() && used(link))
    }

    /// Iterates over the links that were given up and may come back.
    pub(crate) fn left(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(|link| link.state == State::Left && self.only.is_none())
    }

    /// Returns the only link that may carry traffic; `None` if there are several.
    pub(crate) fn lone(&self) -> Option<(usize, &Link)> {
        let mut used = self.used();
        used.next().filter(|_| used.next().is_none())
    }

    /// Returns the index of the link for a message of `len` bytes that is alone in the window. `None`: the
    /// strategy has to see the message.
    pub(crate) fn choose(&self, rails: &[Rail], now: Instant, len: u64) -> Option<usize> {
        self.choose_by(rails, now, |strategy, views| strategy.lone(now, len, views))
    }

    /// Returns the index of the link that alone carries a message of `len` bytes before its late receiver is
    /// expected to look for it.
    #[cold]
    pub(crate) fn choose_in_time(&self, rails: &[Rail], now: Instant, len: u64) -> Option<usize> {
        let looks_at = self.lateness.looks_at(now);
        self.choose_by(rails, now, |strategy, views| strategy.lone_in_time(now, len, views, looks_at))
    }

    #[inline(always)]
    fn choose_by(
        &self,
        rails: &[Rail],
        now: Instant,
        choose: impl FnOnce(&dyn Strategy, &[RailView]) -> Option<RailId>,
    ) -> Option<usize> {
        let mut open = self.used().filter(|(_, link)| link.is_up());
        let view = |link| view_of_any(now, link, rails, &self.way);
        let mut views = [view(open.next()?.1); MAX_RAILS];
        let further = views[1..].iter_mut().zip(open).map(|(place, (_, link))| *place = view(link)).count();
        let rail = choose(&*self.strategies.usual, &views[..=further])?;
        self.links.iter().position(|link| link.rail == rail)
    }
}
