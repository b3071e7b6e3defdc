//! Helpers of test rails for packets that bypass the window: the inner rail carries them as posted ones,
//! and its reports of them are dropped.

use nmad_engine::{Departure, Driver, Event, Order, Packet, PeerId, PollScope, Segments};

/// Number of a packet whose report is dropped.
const SWALLOWED: u32 = u32::MAX;

/// Returns the bytes of such a packet.
pub fn whole(head: &[u64], data: &Segments) -> Vec<u8> {
    let mut bytes = Vec::new();
    data.append_behind(head, &mut bytes);
    bytes
}

/// Gives a packet to the inner rail.
pub fn carry(below: &mut dyn Driver, to: PeerId, bytes: Vec<u8>) {
    let packet = Packet { bytes, in_place: Vec::new() };
    below.send(Departure::Order(Order::Packet { to, number: SWALLOWED, packet }));
}

/// Polls the inner rail.
pub fn poll(below: &mut dyn Driver, scope: PollScope, mut report: impl FnMut(Event<'_>)) -> bool {
    below.poll(scope, &mut |event| match event {
        Event::Sent { number: SWALLOWED, .. } => {}
        event => report(event),
    })
}
