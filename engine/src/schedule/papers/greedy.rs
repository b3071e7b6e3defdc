//! `greedy`: each rail that becomes idle takes the first message, whole (P2 section 3.2).

use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::schedule::builder::PacketBuilder;
use crate::schedule::strategy::{RailView, Shares, Strategy};

pub(crate) struct Greedy;

impl Strategy for Greedy {
    fn name(&self) -> &'static str {
        "greedy"
    }

    fn lone(&self, now: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        rails.iter().min_by_key(|rail| rail.idle_at.max(now)).map(|rail| rail.rail)
    }

    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        // A waiting caller asks busy rails, too: the rail that is idle earliest gets the message.
        let is_first = rail.idle_at <= now || rail.rivals.iter().all(|rival| rail.idle_at <= rival.idle_at);
        packet.take(window, rail.scope(is_first), |_, _| true);
    }

    fn split(&mut self, _: Instant, _: u64, _: &[RailView]) -> Shares {
        Shares::FirstIdle
    }
}
