//! `ratio_split`: large bodies in proportion to the rails' bandwidths, configured or nominal. What other
//! libraries do; it ignores that the ratio depends on the size and that a rail may be busy. Small messages
//! are coalesced on the rail with the lowest latency.

use super::aggregate::coalesce;
use super::builder::PacketBuilder;
use super::strategy::{self, RailView, ShareList, Shares, Strategy};
use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;

pub(super) struct RatioSplit;

impl Strategy for RatioSplit {
    fn name(&self) -> &'static str {
        "ratio_split"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::fastest(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        coalesce(rail.scope(rail.fastest), window, packet);
    }

    fn split(&mut self, _: Instant, len: u64, rails: &[RailView]) -> Shares {
        // A rail of unknown bandwidth counts as much as the slowest known one.
        let known = rails.iter().map(|rail| rail.bandwidth).filter(|&b| b > 0).min().unwrap_or(1);
        Shares::Fixed(proportional(
            len,
            rails,
            |rail| if rail.bandwidth > 0 { rail.bandwidth } else { known },
        ))
    }
}

/// Shares of `len` in proportion to the weights; they add up to `len`.
pub(super) fn proportional(len: u64, rails: &[RailView], weight: impl Fn(&RailView) -> u64) -> ShareList {
    // No network is that fast; the product below stays within 128 bits.
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
