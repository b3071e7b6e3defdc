//! `weighted`: splits large bodies by P4's weighted formula (section III-C), for any number of rails.
//!
//! Rails join in the order in which they become idle. From the time when the m-th one joins until the next
//! one does, the joined rails carry data in proportion to their asymptotic bandwidths; the data left after
//! the last has joined is split the same way:
//!
//! `chunk_i = sum over the steps with i of (B_i / sum B) * data of the step`, where
//! `data of a step = sum B * time until the next rail is idle`.
//!
//! It ignores latencies and the dependence of bandwidth on size, which `split` includes. Small messages are
//! coalesced on the rail with the lowest latency.

use crate::clock::Instant;
use crate::collect::window::Window;
use crate::packet::RailId;
use crate::schedule::builder::PacketBuilder;
use crate::schedule::strategy::{self, RailView, ShareList, Shares, Strategy};

pub(crate) struct Weighted;

impl Strategy for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn lone(&self, _: Instant, _: u64, rails: &[RailView]) -> Option<RailId> {
        strategy::fastest(rails)
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        packet.coalesce(window, rail.scope(rail.fastest));
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        Shares::Fixed(by_steps(now, len, rails))
    }
}

fn by_steps(now: Instant, len: u64, rails: &[RailView]) -> ShareList {
    // Bytes per nanosecond, time of joining, and index of the rail.
    let mut order = [(0.0f64, 0u64, 0usize); nmad_wire::MAX_RAILS];
    let count = rails.len().min(order.len());
    let order = &mut order[..count];
    for (index, (place, rail)) in order.iter_mut().zip(rails).enumerate() {
        *place = (rail.forecast.bandwidth(), rail.busy_ns(now), index);
    }
    order.sort_unstable_by_key(|&(_, joins_ns, index)| (joins_ns, index));
    let mut chunks = [0u64; nmad_wire::MAX_RAILS];
    let mut rest = len;
    for present in 1..=count {
        let sum: f64 = order[..present].iter().map(|(bandwidth, ..)| bandwidth).sum();
        let step = match order.get(present) {
            Some(next) => ((next.1 - order[present - 1].1) as f64 * sum) as u64,
            None => u64::MAX,
        };
        let data = step.min(rest);
        let mut left = data;
        for (place, &(bandwidth, _, index)) in order[..present].iter().enumerate() {
            let share = if place + 1 == present { left } else { (data as f64 * (bandwidth / sum)) as u64 };
            let share = share.min(left);
            chunks[index] += share;
            left -= share;
        }
        rest -= data;
    }
    let shares = rails.iter().zip(chunks).filter(|(_, chunk)| *chunk > 0);
    shares.map(|(rail, chunk)| (rail.rail, chunk)).collect()
}
