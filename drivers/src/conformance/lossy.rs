//! Cases for rails that lose, repeat or reorder packets.

use super::world::{A, B, Seen, World, packet};
use nmad_wire::Header;

pub(super) fn intact(world: &mut World) {
    world.connect();
    let depth = world.limits().depth;
    let len = |number: u32| Header::LEN + number as usize % 1000;
    for number in 0..3000u32 {
        world.until("room", |w| (number as usize) < w.sent(A) + depth);
        world.post_packet(A, number, len(number));
    }
    world.until("everything has left", |w| w.sent(A) == 3000);
    world.until("a good part arrives", |w| w.arrived(B) > 1000);
    for seen in world.seen(B) {
        let Seen::Arrived(_, bytes) = seen else { continue };
        let header = Header::decode(bytes).expect("the header is intact");
        assert!(*bytes == packet(header.number, len(header.number)), "packet {} is intact", header.number);
    }
}
