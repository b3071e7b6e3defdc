//! Cases for rails that lose, repeat or reorder packets.

use super::memory::Memory;
use super::packets::words;
use super::world::{A, B, Seen, World, packet};
use nmad_engine::transfer::driver::{Departure, How, Sent};
use nmad_wire::Header;

/// Orders for which [`Sent::Done`] is returned were sent entirely, and are not reported.
pub(super) fn at_once(world: &mut World) {
    world.connect();
    let (depth, to) = (world.limits().depth, world.id(B));
    let len = |number: u32| Header::LEN + number as usize % 1000;
    let mut posted = 0;
    for number in 0..3000u32 {
        let mut whole = Memory::zeroed(len(number));
        whole.bytes_mut().copy_from_slice(&packet(number, len(number)));
        let middle = Header::LEN + number as usize % 1000 / 2;
        let data = whole.pieces(&[Header::LEN..middle, middle..len(number)]);
        let head = words(&whole.bytes()[..Header::LEN]);
        let message = Departure::Message { to, number, head: &head, data: &data, how: How::Send };
        if number % 5 == 2 || world.rail(A).send(message) != Sent::Done {
            posted += 1;
            world.post_packet(A, number, len(number));
        }
        // The memory of a completed order belongs to the sender again.
        whole.bytes_mut().fill(0);
        world.until("room", |w| posted < w.sent(A) + depth);
        world.poll(B);
    }
    world.until("everything has left", |w| w.sent(A) == posted);
    world.until("a good part arrives", |w| w.arrived(B) > 1000);
    check_intact(world, len);
}

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
    check_intact(world, len);
}

fn check_intact(world: &mut World, len: impl Fn(u32) -> usize) {
    for seen in world.seen(B) {
        let Seen::Arrived(_, bytes) = seen else { continue };
        let header = Header::decode(bytes).expect("the header is intact");
        assert!(*bytes == packet(header.number, len(header.number)), "packet {} is intact", header.number);
    }
}
