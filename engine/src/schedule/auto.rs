//! `auto`, the default: right at every size, from what the rails were measured to do.
//!
//! A small message goes over the rail that is predicted to deliver it first, its busy time included, so it
//! may wait for a fast rail that is busy rather than take an idle slow one; whatever else waits joins it
//! while sharing a packet pays (P2 section 3.3 and P4 section III-B). Which messages are small is the
//! threshold of the peer. Large bodies are shared out with equal finish time, as `split` does, unless one
//! rail alone was seen to be faster ([`super::together`]).

use super::aggregate::coalesce;
use super::builder::PacketBuilder;
use super::split::equal_finish;
use super::strategy::{RailView, Shares, Strategy};
use super::together::Together;
use crate::clock::{Duration, Instant};
use crate::collect::request::Prefer;
use crate::collect::window::Window;
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
        rails.iter().min_by_key(|rail| (arrives_ns(now, len, rail), rail.rail)).map(|rail| rail.rail)
    }

    #[inline]
    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        let first = if rail.rivals.is_empty() { None } else { window.first() };
        let common = first.is_none_or(|entry| match entry.prefer() {
            Prefer::Bandwidth => carries_most(rail),
            Prefer::Either | Prefer::Latency => delivers_first(now, entry.data_len(), rail),
        });
        coalesce(rail.scope(common), window, packet);
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        let (shares, finish_ns) = equal_finish(now, len, rails);
        if shares.len() < 2 || !self.together.prefers_alone(len, Duration::from_ns(finish_ns)) {
            return Shares::Fixed(shares);
        }
        let finish_ns = |view: &&RailView| view.idle_at.since(now).as_ns() + view.forecast.body_ns(len);
        Shares::of(rails.iter().min_by_key(finish_ns).map(|view| (view.rail, len)))
    }

    fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        self.together.carried(len, rails, took);
    }

    fn revises(&self) -> bool {
        true
    }
}

/// Whether no other rail is predicted to deliver a message of `len` bytes earlier. Of equal ones it is the
/// first, so that there always is one.
fn delivers_first(now: Instant, len: u64, rail: &RailView) -> bool {
    let mine = (arrives_ns(now, len, rail), rail.rail);
    rail.rivals.iter().all(|other| mine <= (arrives_ns(now, len, other), other.rail))
}

/// Whether no other rail carries more in the long run; of equal ones it is the first.
fn carries_most(rail: &RailView) -> bool {
    let mine = rail.forecast.bandwidth();
    let is_behind = |other: &RailView| {
        let theirs = other.forecast.bandwidth();
        theirs < mine || (theirs == mine && rail.rail < other.rail)
    };
    rail.rivals.iter().all(is_behind)
}

/// How long it takes until a rail has delivered a message of `len` bytes, with what it has to carry before.
fn arrives_ns(now: Instant, len: u64, rail: &RailView) -> u64 {
    rail.idle_at.since(now).as_ns() + rail.forecast.eager_ns(len)
}
