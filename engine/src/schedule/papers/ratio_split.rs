//! `ratio_split`: splits large bodies in proportion to the rails' sampled bandwidths (P2 section 3.4), or
//! the configured or nominal ones without samples. It ignores that the ratio depends on the size and that a
//! rail may be busy. Small messages are coalesced on the rail with the lowest latency.

use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::schedule::builder::PacketBuilder;
use crate::schedule::strategy::{self, RailView, ShareList, Shares, Strategy};

pub(crate) struct RatioSplit;

impl Strategy for RatioSplit {
    fn name(&self) -> &'static str {
        "ratio_split"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::fastest(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.coalesce(window, rail.scope(rail.fastest));
    }

    fn split(&mut self, _: Instant, len: u64, rails: &[RailView]) -> Shares {
        // The weight is the bandwidth; a rail of unknown bandwidth has that of the slowest known one. The
        // sum of a few weights is far below 64 bits.
        let weight = |rail: &RailView| (rail.forecast.bandwidth() * 1e9) as u64;
        Shares::Fixed(proportional(len, rails, |rail| weight(rail).max(1)))
    }
}

/// Returns shares of `len` in proportion to the weights; they add up to `len`.
pub(super) fn proportional(len: u64, rails: &[RailView], weight: impl Fn(&RailView) -> u64) -> ShareList {
    // No network is faster than this limit, which keeps the product below within 128 bits.
    let weight = |rail: &RailView| weight(rail).min(1 << 56);
    let sum: u128 = rails.iter().map(|rail| u128::from(weight(rail))).sum();
    let (mut before, mut given) = (0u128, 0);
    let share = |rail: &RailView| {
        before += u128::from(weight(rail));
        // Rounding the running total keeps the sum exact.
        let end = (u128::from(len) * before / sum.max(1)) as u64;
        let share = end - given;
        given = end;
        (rail.rail, share)
    };
    rails.iter().map(share).collect()
}
