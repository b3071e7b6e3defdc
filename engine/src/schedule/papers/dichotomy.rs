//! `dichotomy`: splits large bodies over two rails, with a ratio found by bisection (P3 section II-B, P4
//! section III-C).
//!
//! Rails that would become idle only after another one has carried everything are left out (figure 2 of
//! P3). The two remaining rails that would each finish first alone share the body: the split begins with
//! equal parts, and each step moves half as much as the last one towards the rail that is predicted to
//! finish first. `weighted` and `split` handle more than two rails. Small messages are coalesced on the
//! rail with the lowest latency.

use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::schedule::builder::PacketBuilder;
use crate::schedule::strategy::{self, RailView, Shares, Strategy};

pub(crate) struct Dichotomy;

impl Strategy for Dichotomy {
    fn name(&self) -> &'static str {
        "dichotomy"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::fastest(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.coalesce(window, rail.scope(rail.fastest));
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        let finish_ns = |rail: &RailView, len| rail.body_ends_ns(now, len);
        let Some(first) = rails.iter().min_by_key(|rail| finish_ns(rail, len)) else {
            return Shares::FirstIdle;
        };
        let end_ns = finish_ns(first, len);
        let others = rails.iter().filter(|rail| rail.rail != first.rail && rail.busy_ns(now) < end_ns);
        let Some(second) = others.min_by_key(|rail| finish_ns(rail, len)) else {
            return Shares::of([(first.rail, len)]);
        };
        let (mut share, mut step) = (len / 2, len / 4);
        while step > 0 {
            match finish_ns(first, share).cmp(&finish_ns(second, len - share)) {
                core::cmp::Ordering::Less => share += step,
                core::cmp::Ordering::Equal => break,
                core::cmp::Ordering::Greater => share -= step,
            }
            step /= 2;
        }
        // The split does not pay: the first rail alone finishes earlier.
        if finish_ns(second, len - share).max(finish_ns(first, share)) >= end_ns {
            share = len;
        }
        Shares::of([(first.rail, share), (second.rail, len - share)].into_iter().filter(|(_, len)| *len > 0))
    }
}
