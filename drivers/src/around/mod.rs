//! Layers: drivers that wrap a driver, with the same interface to the engine.
//!
//! [`Around`] is a rail made of a rail and a [`Layer`] that sees all orders and events: [`trace`] records
//! them, [`fault`] injects faults, [`throttle`] limits the rate. A layer sees orders and events as the
//! engine does, never sockets; layers nest.

pub mod fault;
mod held;
pub mod layers;
pub mod renumber;
mod ring;
pub mod throttle;
pub mod ticks;
pub mod trace;

use nmad_engine::InPlace;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::access::{Access, Came};
use nmad_engine::transfer::driver::{
    Departure, Driver, Event, Interest, Limits, Order, Scope, Sent, Statistics,
};

/// A layer between the engine and a rail. Each method forwards to the rail unless it is overridden.
pub trait Layer: Send {
    /// The limits of the rail, as the engine sees them.
    fn limits(&self, rail: &impl Driver) -> Limits {
        rail.limits()
    }
    /// Orders that are taken now.
    fn room(&self, rail: &impl Driver) -> usize {
        rail.room()
    }
    /// The descriptor on which a sleeper waits.
    fn wakeup(&mut self, rail: &mut impl Driver, interest: Interest) -> Option<i32> {
        rail.wakeup(interest)
    }
    /// Sends something.
    fn send(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        rail.send(departure)
    }
    /// Begins an access to remote memory.
    fn access(&mut self, rail: &mut impl Driver, access: Access) -> Option<Came> {
        rail.access(access)
    }
    /// Reports events.
    fn poll(&mut self, rail: &mut impl Driver, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        rail.poll(scope, report)
    }
}

/// A rail with a layer around it.
#[derive(Debug)]
pub struct Around<D, L> {
    rail: D,
    layer: L,
}

impl<D: Driver, L: Layer> Around<D, L> {
    /// Puts `layer` around `rail`.
    pub fn new(rail: D, layer: L) -> Self {
        Around { rail, layer }
    }

    /// The layer, to change its settings.
    pub fn layer(&mut self) -> &mut L {
        &mut self.layer
    }
}

impl<D: Driver, L: Layer> Driver for Around<D, L> {
    fn name(&self) -> &str {
        self.rail.name()
    }

    fn limits(&self) -> Limits {
        self.layer.limits(&self.rail)
    }

    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        self.rail.open(region, from, into)
    }

    fn close(&mut self, region: RegionId) {
        self.rail.close(region);
    }

    fn expose(&mut self, memory: Segments) -> Option<Key> {
        self.rail.expose(memory)
    }

    fn conceal(&mut self, key: Key) {
        self.rail.conceal(key);
    }

    fn access(&mut self, access: Access) -> Option<Came> {
        self.layer.access(&mut self.rail, access)
    }

    fn room(&self) -> usize {
        self.layer.room(&self.rail)
    }

    fn send(&mut self, departure: Departure<'_>) -> Sent {
        self.layer.send(&mut self.rail, departure)
    }

    fn flush(&mut self) {
        self.rail.flush();
    }

    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        self.layer.poll(&mut self.rail, scope, report)
    }

    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        self.layer.wakeup(&mut self.rail, interest)
    }

    fn statistics(&self) -> Statistics {
        self.rail.statistics()
    }

    fn leave_in_place(&mut self, from: Option<InPlace>) {
        self.rail.leave_in_place(from);
    }

    fn cipher(&self, peer: Option<PeerId>) -> Option<&'static str> {
        self.rail.cipher(peer)
    }

    fn address(&self) -> String {
        self.rail.address()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        self.rail.know(peer, rail, address)
    }
}

/// Bytes on the wire, without the driver's own headers, and number of packets and chunks.
fn size(departure: &Departure<'_>) -> (u64, usize) {
    match departure {
        Departure::Order(order) => match order {
            Order::Packet { packet, .. } => (packet.len() as u64, 1),
            Order::Chunk { from, .. } => (from.len(), 1),
            Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => (0, 0),
        },
        Departure::Message { head, data, .. } => (size_of_val(*head) as u64 + data.len(), 1),
        Departure::Pushed { packet, chunk } => {
            let body = if let Order::Chunk { from, .. } = chunk { from.len() } else { 0 };
            (packet.len() as u64 + body, 2)
        }
    }
}

/// The peer, and the number on the link.
fn addressee(departure: &Departure<'_>) -> (PeerId, u32) {
    match departure {
        Departure::Message { to, number, .. } => (*to, *number),
        Departure::Order(order) | Departure::Pushed { chunk: order, .. } => match order {
            Order::Packet { to, number, .. } | Order::Chunk { to, number, .. } => (*to, *number),
            Order::Connect { to } | Order::Close { to } | Order::Accept { from: to, .. } => (*to, 0),
        },
    }
}
