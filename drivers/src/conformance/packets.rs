//! Cases about packets.

use super::memory::Memory;
use super::world::{A, B, Seen, World, packet};
use nmad_engine::packet::Packet;
use nmad_engine::transfer::driver::{Departure, How, Order, Sent};
use nmad_wire::Header;

pub(super) fn sizes(world: &mut World) {
    world.connect();
    let longest = world.limits().packet;
    let mut sizes =
        vec![Header::LEN, Header::LEN + 1, 40, 100, 1000, 1500, 4095, 4096, 4097, longest - 1, longest];
    sizes.extend((0..40).map(|n| Header::LEN + (n * 997) % (longest - Header::LEN)));
    sizes.retain(|len| *len <= longest);
    let all: Vec<_> = sizes.iter().enumerate().map(|(number, len)| (number as u32, *len)).collect();
    // First one at a time, then as many at once as the link takes.
    for (number, len) in &all {
        world.post_packet(A, *number, *len);
        world.until("one packet", |w| w.arrived(B) > *number as usize && w.sent(A) > *number as usize);
    }
    world.check_arrived(B, &all);
    world.forget();
    stream(world, &all);
    world.check_arrived(B, &all);
}

pub(super) fn in_place(world: &mut World) {
    world.connect();
    let limits = world.limits();
    if limits.gather == 0 {
        return;
    }
    let mut all = Vec::new();
    for number in 0..60u32 {
        let cuts = 1 + number as usize % limits.gather.min(6);
        let len = (64 + number as usize * 1511).min(limits.packet);
        all.push((number, len));
        let packet = cut(world, packet(number, len), cuts);
        let to = world.id(B);
        world.until("room", |w| (number as usize) < w.sent(A) + w.limits().depth);
        world.post(A, Order::Packet { to, number, packet });
    }
    world.until("all packets", |w| w.arrived(B) == 60 && w.sent(A) == 60);
    world.check_arrived(B, &all);
    check_reported(world, 60);
}

/// Cuts parts out of a packet and leaves them in segments of their own.
fn cut(world: &mut World, whole: Vec<u8>, cuts: usize) -> Packet {
    let mut bytes = whole[..Header::LEN].to_vec();
    let mut in_place = Vec::new();
    let (body, step) = (&whole[Header::LEN..], (whole.len() - Header::LEN) / cuts);
    for (cut, part) in body.chunks(step.max(1)).enumerate() {
        if cut >= cuts {
            bytes.extend_from_slice(part);
            continue;
        }
        // A part of each is copied, the rest stays in memory; every third is in two pieces.
        let staged = if cut % 2 == 0 { part.len() / 3 } else { 0 };
        bytes.extend_from_slice(&part[..staged]);
        let mut memory = Memory::zeroed(part.len() - staged + 8);
        let len = part.len() - staged;
        memory.bytes_mut()[8..].copy_from_slice(&part[staged..]);
        let segments = if cut % 3 == 2 {
            memory.pieces(&[8..8 + len / 2, 8 + len / 2..8 + len])
        } else {
            memory.pieces(std::slice::from_ref(&(8..8 + len)))
        };
        in_place.push((bytes.len(), segments));
        world.kept.push(memory);
    }
    Packet { bytes, in_place }
}

pub(super) fn many(world: &mut World) {
    world.connect();
    let all: Vec<_> = (0..5000u32).map(|number| (number, Header::LEN + number as usize % 61)).collect();
    stream(world, &all);
    world.check_arrived(B, &all);
    check_reported(world, all.len());
}

pub(super) fn passed(world: &mut World) {
    at_once(world, How::Inject);
}

pub(super) fn sent_now(world: &mut World) {
    at_once(world, How::Send);
}

pub(super) fn fetched(world: &mut World) {
    world.connect();
    let longest = world.limits().packet;
    let all: Vec<_> = (0..900u32)
        .map(|n| (n, Header::LEN + (n as usize * n as usize * 7 % 3000).min(longest - Header::LEN)))
        .collect();
    let (mut looks, mut taken) = (0, 0);
    let (single, several) = all.split_at(300);
    for burst in single.chunks(1).chain(several.chunks(world.limits().depth.min(3))) {
        for &(number, len) in burst {
            world.post_packet(A, number, len);
        }
        for look in 0..100 {
            match world.look_for(B) {
                Some(false) => looks += 1,
                Some(true) => taken += 1,
                None if look % 5 == 0 => world.poll(B),
                None => {}
            }
        }
        let count = burst[burst.len() - 1].0 as usize + 1;
        world.until("the burst", |w| w.arrived(B) == count && w.sent(A) == count);
        if burst.len() == 1 && !world.is_alone() {
            // Some rails poll for a single packet only if it answers one.
            world.post_packet(B, count as u32 - 1, Header::LEN);
            world.until("the answer", |w| w.arrived(A) == count && w.sent(B) == count);
        }
    }
    world.check_arrived(B, &all);
    assert!(looks == 0 || taken > 0, "a look finds something");
}

/// Sends packets directly, with some posted ones between them.
fn at_once(world: &mut World, how: How) {
    world.connect();
    let (longest, to) = (world.limits().packet, world.id(B));
    let all: Vec<_> = (0..3000u32)
        .map(|n| (n, Header::LEN + (n as usize * n as usize * 7 % 900).min(longest - Header::LEN)))
        .collect();
    let mut posted = 0;
    for &(number, len) in &all {
        let mut whole = Memory::zeroed(len);
        whole.bytes_mut().copy_from_slice(&packet(number, len));
        // Every second one in three segments, and some of them posted.
        let middle = Header::LEN + (len - Header::LEN) / 2;
        let data = match number % 2 {
            0 => whole.pieces(std::slice::from_ref(&(Header::LEN..len))),
            _ => whole.pieces(&[Header::LEN..middle, middle..len]),
        };
        let head = words(&whole.bytes()[..Header::LEN]);
        let message = Departure::Message { to, number, head: &head, data: &data, how };
        let sent = if number % 50 == 7 { Sent::Retry } else { world.rail(A).send(message) };
        if sent == Sent::Retry {
            world.post_packet(A, number, len);
        }
        if sent != Sent::Done {
            posted += 1;
            world.until("room", |w| w.sent(A) == posted);
        }
        // The memory of an accepted message belongs to the sender again.
        whole.bytes_mut().fill(0);
    }
    world.until("all packets", |w| w.arrived(B) == all.len() && w.sent(A) == posted);
    world.check_arrived(B, &all);
}

/// Converts bytes to the words that the engine passes with a direct send.
pub(super) fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight"))).collect()
}

pub(super) fn depth(world: &mut World) {
    world.connect();
    let limits = world.limits();
    let count = limits.depth.min(world.rail(A).room());
    assert!(count > 0, "a link takes at least one order");
    let to = world.id(B);
    let all: Vec<_> = (0..count as u32).map(|number| (number, limits.packet)).collect();
    for (number, len) in &all {
        let packet = Packet { bytes: packet(*number, *len), in_place: Vec::new() };
        world.order(A, Order::Packet { to, number: *number, packet });
    }
    world.rail(A).flush();
    world.until("all packets", |w| w.arrived(B) == count && w.sent(A) == count);
    world.check_arrived(B, &all);
}

/// Sends packets with as many under way as the link takes; one flush for several.
fn stream(world: &mut World, all: &[(u32, usize)]) {
    let depth = world.limits().depth;
    let to = world.id(B);
    let mut posted = 0;
    while posted < all.len() {
        while posted < all.len() && posted < world.sent(A) + depth && world.rail(A).room() > 0 {
            let (number, len) = all[posted];
            let packet = Packet { bytes: packet(number, len), in_place: Vec::new() };
            world.order(A, Order::Packet { to, number, packet });
            posted += 1;
        }
        world.rail(A).flush();
        world.until("room", |w| w.sent(A) + depth > posted && w.room(A) > 0);
    }
    let count = all.len();
    world.until("all packets", |w| w.arrived(B) == count && w.sent(A) == count);
}

fn check_reported(world: &World, count: usize) {
    let sent: Vec<_> = world
        .seen(A)
        .iter()
        .filter_map(|seen| match seen {
            Seen::Sent(number, back) => Some((*number, *back)),
            _ => None,
        })
        .collect();
    let expected: Vec<_> = (0..count as u32).map(|number| (number, true)).collect();
    assert_eq!(sent, expected, "each packet is reported as sent, in the order of posting");
}
