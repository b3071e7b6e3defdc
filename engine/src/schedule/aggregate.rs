//! `aggregate`: coalesces data and control frames of all flows to one peer into packets on the primary
//! rail; first fit, so that a later small message can fill what an earlier large one leaves (P1 section 4).

use super::builder::PacketBuilder;
use super::strategy::{self, RailView, Shares, Strategy};
use crate::clock::Instant;
use crate::collect::window::{Scope, Window};
use crate::packet::RailId;

pub(super) struct Aggregate;

impl Strategy for Aggregate {
    fn name(&self) -> &'static str {
        "aggregate"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::primary(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        coalesce(rail.scope(rail.primary), window, packet);
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        super::fifo::Fifo.split(now, len, rails)
    }
}

/// Fills the packet with all that fits.
#[inline]
pub(super) fn coalesce(scope: Scope, window: &mut Window, packet: &mut PacketBuilder) {
    while packet.take(window, scope, PacketBuilder::fits) {}
}
