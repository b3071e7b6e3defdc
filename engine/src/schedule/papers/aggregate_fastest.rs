//! `aggregate_fastest`: coalesces small messages on the rail with the lowest latency, and sends each large
//! one whole over the first idle rail (P2 section 3.3).

use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::schedule::builder::PacketBuilder;
use crate::schedule::strategy::{self, RailView, Shares, Strategy};

pub(crate) struct AggregateFastest;

impl Strategy for AggregateFastest {
    fn name(&self) -> &'static str {
        "aggregate_fastest"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::fastest(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.coalesce(window, rail.scope(rail.fastest));
    }

    fn split(&mut self, _: Instant, _: u64, _: &[RailView]) -> Shares {
        Shares::FirstIdle
    }
}
