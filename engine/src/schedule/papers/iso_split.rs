//! `iso_split`: splits large bodies in equal parts over all open rails (figure 3b of P4); coalesces small
//! messages on the rail with the lowest latency.

use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::schedule::builder::PacketBuilder;
use crate::schedule::strategy::{self, RailView, Shares, Strategy};

pub(crate) struct IsoSplit;

impl Strategy for IsoSplit {
    fn name(&self) -> &'static str {
        "iso_split"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::fastest(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.coalesce(window, rail.scope(rail.fastest));
    }

    fn split(&mut self, _: Instant, len: u64, rails: &[RailView]) -> Shares {
        Shares::Fixed(super::ratio_split::proportional(len, rails, |_| 1))
    }
}
