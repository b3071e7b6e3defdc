//! `aggregate`: coalesces data and control frames of all flows to one peer into packets on the primary
//! rail. First fit: a later small message can fill the space that an earlier large one leaves (P1 section
//! 4).

use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::schedule::builder::PacketBuilder;
use crate::schedule::strategy::{self, RailView, Shares, Strategy};

pub(crate) struct Aggregate;

impl Strategy for Aggregate {
    fn name(&self) -> &'static str {
        "aggregate"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::primary(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.coalesce(window, rail.scope(rail.primary));
    }

    fn split(&mut self, _: Instant, len: u64, rails: &[RailView]) -> Shares {
        Shares::primary(len, rails)
    }
}
