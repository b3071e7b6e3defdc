//! What the rails of these tests have in common.
#![allow(dead_code)]

use nmad_engine::transfer::driver::{Event, Limits, Order};
use nmad_wire::{Eager, Header, Kind};

/// What a rail can do that need not do much.
pub const LIMITS: Limits = Limits {
    packet: 1 << 15,
    chunk: 1 << 20,
    gather: 4,
    depth: 8,
    lossy: false,
    push: 0,
    passes: false,
    bandwidth: 1_000_000_000,
    latency_ns: 0,
};

/// Reports the packets that were posted as sent.
pub fn report_sent(orders: &mut Vec<Order>, report: &mut dyn FnMut(Event<'_>)) {
    for order in orders.drain(..) {
        if let Order::Packet { to, number, packet } = order {
            report(Event::Sent { to, number, packet: Some(packet) });
        }
    }
}

/// The packet of an empty message with tag 7, of which so many came before.
pub fn message(came: u32) -> Vec<u8> {
    let header = Header { kind: Kind::Packet, len: Eager::ALONE_LEN as u32, number: came, ack: 0 };
    let eager = Eager { flags: 0, context: 0, tag: 7, seq: came, len: 0, request: 0 };
    eager.alone_head(&header).iter().flat_map(|word| word.to_ne_bytes()).collect()
}
