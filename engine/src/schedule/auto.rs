//! `auto`, the default: chooses for every size by the measured profiles of the rails.
//!
//! A small message uses the rail that is predicted to deliver it first, including the time until the rail
//! is idle, so it may wait for a fast busy rail instead of using a slow idle one; other waiting messages
//! join its packet while sharing pays (P2 section 3.3 and P4 section III-B). Several waiting messages are
//! split over the rails like a body, so that all rails are predicted to finish at the same time; if a
//! second packet costs more than it saves, all messages share one. Rails share the core that posts, so
//! after a packet on one of them all wait for a moment to aggregate ([`Strategy::gathers`]). The peer's
//! threshold decides which messages are small. Large bodies are split with equal finish time, as in
//! `split`, unless a single rail was observed to be faster ([`super::together`]). A message to a late
//! receiver that fits into a packet is not split if one rail delivers it before the receiver is expected to
//! look: its sender then spends the least time in calls.

use super::builder::PacketBuilder;
use super::split::{Bodies, equal_finish};
use super::strategy::{RailView, Shares, Strategy};
use super::together::Together;
use super::wire;
use crate::clock::{Duration, Instant};
use crate::collect::request::Prefer;
use crate::collect::window::{Entry, Window};
use crate::packet::RailId;

#[derive(Default)]
pub(super) struct Auto {
    together: Together,
}

impl Strategy for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    #[inline]
    fn lone(&self, now: Instant, len: u64, rails: &[RailView]) -> Option<RailId> {
        rails.iter().min_by_key(|rail| (rail.eager_ends_ns(now, len), rail.rail)).map(|rail| rail.rail)
    }

    #[inline]
    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        let first = if rail.rivals.is_empty() { None } else { window.first() };
        let part = match first {
            None => u64::MAX,
            Some(entry) if entry.prefer() == Prefer::Bandwidth => all_if(carries_most(rail)),
            Some(entry) if window.common_count() == 1 => all_if(delivers_first(now, entry.data_len(), rail)),
            Some(entry) => part_of(now, (window.backlog() as u64, entry.len() as u64), rail),
        };
        // The message at the end of this rail's part belongs to it if most of its bytes do.
        let is_mine = |len: usize, entry: &Entry| (len + entry.len() / 2) as u64 <= part;
        let begun = packet.len();
        if part < u64::MAX {
            let scope = rail.scope(part > 0);
            while packet.take(window, scope, |packet, entry| {
                packet.fits(entry) && is_mine(packet.len() - begun, entry)
            }) {}
        }
        packet.coalesce(window, rail.scope(part == u64::MAX));
    }

    fn gathers(&self) -> bool {
        true
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        let (shares, finish_ns) = equal_finish::<Bodies>(now, len, rails);
        if shares.len() < 2 || !self.together.prefers_alone(len, Duration::from_ns(finish_ns)) {
            return Shares::Fixed(shares);
        }
        Shares::of(ends_first(now, len, rails).map(|(rail, _)| (rail, len)))
    }

    fn lone_in_time(&self, now: Instant, len: u64, rails: &[RailView], until: Instant) -> Option<RailId> {
        ends_first(now, len, rails)
            .filter(|&(_, ns)| now + Duration::from_ns(ns) <= until)
            .map(|(rail, _)| rail)
    }

    fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        self.together.carried(len, rails, took);
    }

    fn relearnt(&mut self) {
        self.together.forget();
    }

    fn revises(&self) -> bool {
        true
    }

    fn parts_eager(&self) -> bool {
        true
    }
}

/// Returns the rail that alone would carry a body first, and the nanoseconds until then.
fn ends_first(now: Instant, len: u64, rails: &[RailView]) -> Option<(RailId, u64)> {
    let end = |view: &RailView| (view.rail, view.body_ends_ns(now, len));
    rails.iter().map(end).min_by_key(|&(_, ns)| ns)
}

fn all_if(condition: bool) -> u64 {
    if condition { u64::MAX } else { 0 }
}

/// Returns how many of `len` bytes of messages, of which the first has `first` bytes, this rail should
/// carry now; [`u64::MAX`] if no other rail takes part. The rail with the largest share takes the first
/// message in any case. A busy rail leaves its share to a rail that is idle earlier: if messages share no
/// packet, the core would otherwise post all of one rail's messages before any of another's.
fn part_of(now: Instant, (len, first): (u64, u64), rail: &RailView) -> u64 {
    let rails = core::iter::once(*rail).chain(rail.rivals.iter().copied());
    let Some((ways, count)) = wire::ways(now, len, rails) else { return u64::MAX };
    let ways = &ways[..count];
    let (shares, finish_ns) = equal_finish::<Bodies>(now, len, ways);
    if shares.len() > 1 {
        // The core posts to one rail after the other.
        let further_ns = ways.iter().map(|way| way.forecast.packet_ns()).min().unwrap_or(0);
        let best = ways.iter().min_by_key(|way| (way.body_ends_ns(now, len), way.rail));
        let together_ns = finish_ns + (shares.len() as u64 - 1) * further_ns;
        if let Some(best) = best.filter(|best| best.body_ends_ns(now, len) <= together_ns) {
            return all_if(best.rail == rail.rail);
        }
    }
    let takes = |way: &RailView| shares.iter().any(|share| share.0 == way.rail && share.1 >= first);
    let is_before = |way: &RailView| way.idle_at < rail.idle_at && takes(way);
    if rail.idle_at > now && ways.iter().any(is_before) {
        return 0;
    }
    let mine = shares.iter().find(|share| share.0 == rail.rail).map_or(0, |share| share.1);
    let leads = |other: &(RailId, u64)| other.1 < mine || (other.1 == mine && rail.rail <= other.0);
    match mine {
        all if all == len => u64::MAX,
        most if shares.iter().all(leads) => most.max(first),
        // One message too many delays a slow rail more than it delays a fast rail.
        less => less.saturating_sub(first / 2),
    }
}

/// Whether no other rail is predicted to deliver a message of `len` bytes earlier. The first of equal rails
/// counts, so that there is always one.
fn delivers_first(now: Instant, len: u64, rail: &RailView) -> bool {
    let mine = (rail.eager_ends_ns(now, len), rail.rail);
    rail.rivals.iter().all(|other| mine <= (other.eager_ends_ns(now, len), other.rail))
}

/// Whether no other rail has more bandwidth; the first of equal rails counts.
fn carries_most(rail: &RailView) -> bool {
    let mine = rail.forecast.bandwidth();
    let is_behind = |other: &RailView| {
        let theirs = other.forecast.bandwidth();
        theirs < mine || (theirs == mine && rail.rail < other.rail)
    };
    rail.rivals.iter().all(is_behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Packet, PeerId};
    use crate::profile::forecast::Forecast;
    use crate::schedule::builder::Bounds;
    use alloc::vec;
    use alloc::vec::Vec;

    const BOUNDS: Bounds =
        Bounds { len: 1 << 20, in_place_min: 0, block_min: 0, aggregate_max: usize::MAX, gather: 0 };

    /// Forecasts of rails with these rates in bytes per microsecond and one microsecond of latency.
    fn forecasts(rates: &[u64]) -> Vec<Forecast> {
        rates.iter().map(|rate| Forecast::nominal(1_000, rate * 1_000_000, 1)).collect()
    }

    /// A rail with a wire of its own; the first one is primary.
    fn view(index: usize, idle_at: Instant, forecast: &Forecast) -> RailView<'_> {
        let rail = RailId(index as u8);
        let (primary, fastest) = (index == 0, index == 0);
        RailView {
            rail,
            wire: rail,
            idle_at,
            bandwidth: 0,
            latency_ns: 0,
            primary,
            fastest,
            forecast,
            rivals: &[],
        }
    }

    /// Returns how many of `count` entries of `len` bytes each rail takes, when the rails are asked in turn
    /// until the window is empty, as by a waiting caller.
    fn taken(rates: &[u64], count: usize, len: usize) -> Vec<usize> {
        let (forecasts, now) = (forecasts(rates), Instant::from_ns(1_000_000));
        let mut window = Window::new(PeerId(1));
        (0..count).for_each(|_| window.submit(None, Entry::control(vec![0; len])));
        let (mut auto, mut taken) = (Auto::default(), vec![0; rates.len()]);
        let mut idle_at = vec![now; rates.len()];
        for turn in 0.. {
            let index = turn % rates.len();
            assert!(turn < 100_000, "the rails leave {} entries", window.common_count());
            let view = |index: usize| view(index, idle_at[index], &forecasts[index]);
            let rivals: Vec<RailView> = (0..rates.len()).filter(|other| *other != index).map(view).collect();
            let mut packet = PacketBuilder::new(Packet::default(), BOUNDS, Vec::new());
            let before = window.common_count();
            auto.fill(now, &RailView { rivals: &rivals, ..view(index) }, &mut window, &mut packet);
            let carried = before - window.common_count();
            taken[index] += carried;
            idle_at[index] =
                idle_at[index] + Duration::from_ns(forecasts[index].busy_ns((carried * len) as u64));
            if window.is_empty() {
                break;
            }
        }
        taken
    }

    #[test]
    fn waiting_entries_are_split_so_that_rails_finish_together() {
        let halves = taken(&[100, 100], 64, 1_000);
        assert!(halves[0].abs_diff(halves[1]) <= 4, "{halves:?}");
        let unequal = taken(&[400, 100], 100, 1_000);
        assert!((75..=85).contains(&unequal[0]), "{unequal:?}");
    }

    #[test]
    fn one_rail_is_enough_if_it_ends_in_time() {
        let (forecasts, now) = (forecasts(&[100, 400]), Instant::from_ns(1_000_000));
        let views = [0, 1].map(|index| view(index, now, &forecasts[index]));
        let chosen = |ns| Auto::default().lone_in_time(now, 40_000, &views, now + Duration::from_ns(ns));
        assert_eq!(chosen(90_000), None);
        assert_eq!(chosen(110_000), Some(RailId(1)));
    }

    #[test]
    fn a_second_packet_that_costs_more_than_it_saves_is_avoided() {
        assert_eq!(taken(&[100, 100], 16, 10), [16, 0]);
        assert_eq!(taken(&[100, 400], 16, 10), [0, 16]);
    }
}
