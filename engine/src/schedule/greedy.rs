//! `greedy`: each rail that becomes idle takes the first message there is, whole (P2 section 3.2).

use super::builder::PacketBuilder;
use super::strategy::{RailView, Shares, Strategy};
use crate::clock::Instant;
use crate::collect::window::Window;

pub(super) struct Greedy;

impl Strategy for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn passes(&self) -> bool {
        true
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        if let Some(entry) = window.take_first(rail.scope(true), |_| true) {
            packet.push(entry);
        }
    }

    fn split(&mut self, _: Instant, _: u64, _: &[RailView]) -> Shares {
        Shares::FirstIdle
    }
}
