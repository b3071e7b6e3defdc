//! What test rails do with packets that take a short way: the rail below carries them as posted ones, and its
//! report of them is swallowed.

use nmad_engine::{Departure, Driver, Event, Order, Packet, PeerId, PollScope, Segments};

/// Stands for a packet whose report is swallowed.
const SWALLOWED: u32 = u32::MAX;

/// The bytes of such a packet.
pub fn whole(head: &[u64], data: &Segments) -> Vec<u8> {
    let mut bytes = Vec::new();
    data.append_behind(head, &mut bytes);
    bytes
}

/// Gives it to the rail below.
pub fn carry(below: &mut dyn Driver, to: PeerId, bytes: Vec<u8>) {
    let packet = Packet { bytes, in_place: Vec::new() };
    below.send(Departure::Order(Order::Packet { to, number: SWALLOWED, packet }));
}

/// Looks at the rail below.
pub fn poll(below: &mut dyn Driver, scope: PollScope, mut report: impl FnMut(Event<'_>)) -> bool {
    below.poll(scope, &mut |event| match event {
        Event::Sent { number: SWALLOWED, .. } => {}
        event => report(event),
    })
}
