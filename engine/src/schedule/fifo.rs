//! `fifo`: one message per packet, on the primary rail. The baseline without any optimisation.

use super::builder::PacketBuilder;
use super::strategy::{self, RailView, Shares, Strategy};
use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;

pub(super) struct Fifo;

impl Strategy for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::primary(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.take(window, rail.scope(rail.primary), |_, _| true);
    }

    fn split(&mut self, _: Instant, len: u64, rails: &[RailView]) -> Shares {
        Shares::primary(len, rails)
    }
}
