//! Drivers around a driver: the same room below the engine, with something between it and a rail.
//!
//! [`Around`] is a rail made of a rail and a [`Layer`] that sees what passes: [`trace`] writes it down,
//! [`fault`] breaks it on purpose, [`throttle`] slows it down. A layer sees orders and events as the
//! engine does, never sockets; layers nest.

pub mod fault;
mod held;
pub mod throttle;
pub mod trace;

use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, LandingId, PeerId};
use nmad_engine::transfer::driver::{Driver, Event, Limits, Order};

/// What stands between the engine and a rail. Each method passes on unless it is overridden.
pub trait Layer: Send {
    /// What the rail can do, seen through the layer.
    fn limits(&self, rail: &impl Driver) -> Limits {
        rail.limits()
    }
    /// Orders that are taken now.
    fn room(&self, rail: &impl Driver) -> usize {
        rail.room()
    }
    /// What a sleeper waits for.
    fn descriptor(&self, rail: &impl Driver) -> Option<i32> {
        rail.descriptor()
    }
    /// Takes an order.
    fn post(&mut self, rail: &mut impl Driver, order: Order) {
        rail.post(order);
    }
    /// Reports what happened.
    fn poll(&mut self, rail: &mut impl Driver, report: &mut dyn FnMut(Event<'_>)) {
        rail.poll(report);
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

    /// The layer, to change what it does.
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

    fn open(&mut self, landing: LandingId, from: PeerId, into: Segments) -> Key {
        self.rail.open(landing, from, into)
    }

    fn close(&mut self, landing: LandingId) {
        self.rail.close(landing);
    }

    fn accept(&mut self, from: PeerId, landing: LandingId) {
        self.rail.accept(from, landing);
    }

    fn room(&self) -> usize {
        self.layer.room(&self.rail)
    }

    fn post(&mut self, order: Order) {
        self.layer.post(&mut self.rail, order);
    }

    fn flush(&mut self) {
        self.rail.flush();
    }

    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        self.layer.poll(&mut self.rail, report);
    }

    fn descriptor(&self) -> Option<i32> {
        self.layer.descriptor(&self.rail)
    }

    fn door(&mut self) -> Option<i32> {
        self.rail.door()
    }

    fn dropped(&self) -> u64 {
        self.rail.dropped()
    }

    fn address(&self) -> String {
        self.rail.address()
    }

    fn crowd(&mut self) {
        self.rail.crowd();
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        self.rail.know(peer, rail, address)
    }
}

/// Bytes of an order on the wire, without what the driver adds.
fn len(order: &Order) -> u64 {
    match order {
        Order::Packet { packet, .. } => packet.len() as u64,
        Order::Chunk { from, .. } => from.len(),
        Order::Connect { .. } | Order::Close { .. } => 0,
    }
}

/// The peer whom an order concerns.
fn addressee(order: &Order) -> PeerId {
    match order {
        Order::Connect { to } | Order::Close { to } | Order::Packet { to, .. } | Order::Chunk { to, .. } => {
            *to
        }
    }
}
