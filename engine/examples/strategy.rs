//! A strategy of one's own: small messages never wait behind large ones.
//!
//! `express` keeps the rail with the lowest latency for small messages, as far as it can: they go first
//! there, several in a packet, while large bodies are shared out among the other rails. It is registered
//! beside the strategies that come with the engine, and both it and `fifo` carry the same messages between
//! two engines over three rails in memory:
//!
//! ```text
//! cargo run -p nmad-engine --example strategy
//! ```

#[path = "../tests/common/net.rs"]
mod net;

use net::{Net, exact, from, limits, pattern};
use nmad_engine::{
    Config, Entry, Instant, Limits, PacketBuilder, RailId, RailView, Registry, Shares, Strategy, Window,
};

/// Longest entry, header included, that counts as small.
const SMALL: usize = 1 << 10;

struct Express;

impl Strategy for Express {
    fn name(&self) -> &'static str {
        "express"
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        let scope = rail.scope(true);
        let is_small = |entry: &Entry| entry.len() <= SMALL;
        if !rail.fastest {
            // Only what is not small; leaving the packet empty means: nothing for this rail now.
            if let Some(entry) = window.take_first(scope, |entry| !is_small(entry)) {
                packet.push(entry);
            }
            return;
        }
        while let Some(entry) = window.take_first(scope, |entry| is_small(entry) && packet.fits(entry)) {
            packet.push(entry);
        }
        // Other rails may be down, and this one cannot know: what nobody takes would wait for ever.
        if packet.is_empty()
            && let Some(entry) = window.take_first(scope, |_| true)
        {
            packet.push(entry);
        }
    }

    fn split(&mut self, _: Instant, len: u64, rails: &[RailView]) -> Shares {
        let others: Vec<&RailView> = rails.iter().filter(|rail| !rail.fastest).collect();
        let sum: u64 = others.iter().map(|rail| rail.bandwidth).sum();
        let share = |rail: &&RailView| {
            let share = u128::from(len) * u128::from(rail.bandwidth) / u128::from(sum.max(1));
            (rail.rail, share as u64)
        };
        // What rounding, or a lack of other rails, leaves over goes to whichever rail is idle.
        Shares::of(others.iter().map(share))
    }
}

/// Six small messages and a large one from host 0 to host 1.
fn carry(strategy: &str) {
    let mut registry = Registry::default();
    registry.add(|| Box::new(Express));
    let config = Config { strategy: strategy.into(), registry, ..Config::default() };
    let rail = |mb_per_s: u64, latency_us: u64| Limits {
        bandwidth: mb_per_s * 1_000_000,
        latency_ns: latency_us * 1_000,
        ..limits()
    };
    let mut net = Net::new(2, &[rail(500, 1), rail(1_000, 10), rail(2_000, 10)], &config, 1);
    // So that all links are open when it begins.
    exchange(&mut net, &[(99, 8)]);
    net.carried();
    exchange(&mut net, &[(0, 3 << 20), (1, 200), (2, 200), (3, 200), (4, 200), (5, 200), (6, 200)]);
    println!("{strategy}:");
    let said = net.said(0);
    for rail in 0..3 {
        said.iter().filter(|(on, _)| *on == rail).for_each(|(_, text)| println!("  rail {rail}: {text}"));
        let carried = net.hosts[0].engine.counters(RailId(rail as u8));
        println!(
            "  rail {rail} in all: {} B in packets, {} B in chunks",
            carried.packet_bytes, carried.chunk_bytes
        );
    }
}

/// Messages by tag and length, submitted at once, until all have arrived.
fn exchange(net: &mut Net, messages: &[(u64, usize)]) {
    let data: Vec<Vec<u8>> = messages.iter().map(|&(tag, len)| pattern(len, tag)).collect();
    for ((tag, _), data) in messages.iter().zip(&data) {
        net.send(0, 1, 0, *tag, data);
    }
    let posted: Vec<_> =
        messages.iter().map(|&(tag, len)| net.recv(1, from(0), 0, exact(tag), len)).collect();
    net.settle();
    for (received, data) in posted.into_iter().zip(&data) {
        assert!(net.got(1, received, data), "each message arrives whole");
    }
}

fn main() {
    carry("fifo");
    carry("express");
}
