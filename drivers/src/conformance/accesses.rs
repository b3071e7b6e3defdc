//! Cases about accesses to memory that a peer has exposed.

use super::memory::Memory;
use super::world::{A, B, Seen, World};
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, RequestId};
use nmad_engine::transfer::access::{Access, Act, Atomics, Came, RemoteAccess};
use nmad_engine::transfer::driver::Order;

/// Starts an access of the first side to the second side's memory at byte `offset`.
fn access(
    world: &mut World,
    request: u64,
    act: Act,
    (key, there, offset): (Key, &Memory, u64),
    here: Segments,
) {
    let at = there.bytes().as_ptr().expose_provenance() as u64 + offset;
    let (to, request) = (world.id(B), RequestId(request));
    let came = world.rail(A).access(Access { to, request, act, at, key, here });
    came.into_iter().for_each(|came| world.see(A, Seen::Accessed(request, came)));
    world.rail(A).flush();
}

/// The results of accesses so far, in the order of their events.
fn came(world: &World) -> Vec<(u64, Came)> {
    let of = |seen: &Seen| match seen {
        Seen::Accessed(request, came) => Some((request.0, *came)),
        _ => None,
    };
    world.seen(A).iter().filter_map(of).collect()
}

fn expose(world: &mut World, memory: &Memory) -> Key {
    world.rail(B).expose(memory.segments()).expect("memory in one piece can be exposed")
}

pub(super) fn sizes(world: &mut World) {
    world.connect();
    let there = Memory::zeroed(4 << 20);
    let key = expose(world, &there);
    let (from, into) = (Memory::pattern(4 << 20, 5), Memory::zeroed(4 << 20));
    let mut request = 0;
    for len in [1, 8, 100, 4096, 5000, 16 << 10, (16 << 10) + 1, 1 << 20, (3 << 20) + 5] {
        let offset = 333;
        for (act, memory) in [(Act::Put, &from), (Act::Get, &into)] {
            request += 1;
            access(world, request, act, (key, &there, offset), memory.segments().slice(7, len));
            world.until("an access", |w| came(w).len() == request as usize);
            assert_eq!(came(world).last(), Some(&(request, Came::Done)), "{act:?} of {len} B");
        }
        let (len, offset) = (len as usize, offset as usize);
        assert!(there.bytes()[offset..offset + len] == from.bytes()[7..7 + len], "{len} B were put");
        assert!(into.bytes()[7..7 + len] == from.bytes()[7..7 + len], "{len} B were got");
        assert!(there.bytes()[..offset].iter().chain(&there.bytes()[offset + len..]).all(|byte| *byte == 0));
    }
    world.rail(B).conceal(key);
    world.kept.extend([there, from, into]);
}

pub(super) fn pieces(world: &mut World) {
    world.connect();
    let there = Memory::zeroed(400_000);
    let key = expose(world, &there);
    let (from, into) = (Memory::pattern(400_000, 6), Memory::zeroed(400_000));
    let ranges = [200_000..399_999, 0..9000, 60_000..70_011];
    let (out, back) = (from.pieces(&ranges), into.pieces(&ranges));
    access(world, 1, Act::Put, (key, &there, 1), out.clone());
    world.until("a put", |w| !came(w).is_empty());
    access(world, 2, Act::Get, (key, &there, 1), back);
    world.until("a get", |w| came(w).len() == 2);
    assert_eq!(came(world), [(1, Came::Done), (2, Came::Done)]);
    let mut bytes = Vec::new();
    out.append_to(&mut bytes);
    assert!(there.bytes()[1..=bytes.len()] == bytes[..]);
    ranges.into_iter().for_each(|range| assert!(into.bytes()[range.clone()] == from.bytes()[range]));
    // Memory in several pieces cannot be exposed.
    assert_eq!(world.rail(B).expose(there.pieces(&[0..10, 20..30])), None);
    world.rail(B).conceal(key);
    world.kept.extend([there, from, into]);
}

pub(super) fn many(world: &mut World) {
    const COUNT: u64 = 1000;
    world.connect();
    let there = Memory::zeroed(8 * COUNT as usize);
    let key = expose(world, &there);
    let from = Memory::pattern(8 * COUNT as usize, 7);
    for each in 0..COUNT {
        access(world, each, Act::Put, (key, &there, 8 * each), from.segments().slice(8 * each, 8));
    }
    // Accesses are not ordered with packets: neither delays the other.
    world.post_packet(A, 0, 100);
    world.until("all puts, and a packet", |w| came(w).len() == COUNT as usize && w.arrived(B) == 1);
    assert!(came(world).iter().all(|(_, came)| *came == Came::Done));
    assert!(there.bytes() == from.bytes());
    world.rail(B).conceal(key);
    world.kept.extend([there, from]);
}

pub(super) fn atomics(world: &mut World) {
    if world.limits().remote == RemoteAccess::Network(Atomics::None) {
        return;
    }
    world.connect();
    let there = Memory::zeroed(64);
    let key = expose(world, &there);
    let into = Memory::zeroed(64);
    let word = |memory: &Memory, at: usize| {
        memory.bytes()[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    };
    let acts = [Act::Add(5), Act::Add(u64::MAX), Act::Swap(4, 9), Act::Swap(4, 10), Act::Add(0)];
    let before = [0, 5, 4, 9, 9];
    for (request, (act, before)) in (1..).zip(acts.into_iter().zip(before)) {
        access(world, request, act, (key, &there, 16), into.segments().slice(8, 8));
        world.until("an atomic", |w| came(w).len() == request as usize);
        assert_eq!(came(world).last(), Some(&(request, Came::Done)), "{act:?}");
        assert_eq!(word(&into, 8), before, "what was there before {act:?}");
    }
    assert_eq!((word(&there, 8), word(&there, 16), word(&there, 24)), (0, 9, 0));
    world.rail(B).conceal(key);
    world.kept.extend([there, into]);
}

pub(super) fn without_a_link(world: &mut World) {
    let memory = Memory::zeroed(64);
    access(world, 1, Act::Put, (Key(1), &memory, 0), memory.segments());
    world.until("an answer", |w| !came(w).is_empty());
    assert_eq!(came(world), [(1, Came::Undone)]);
    world.kept.push(memory);
}

pub(super) fn lost(world: &mut World) {
    const COUNT: u64 = 40;
    const LEN: u64 = 256 << 10;
    world.connect();
    let there = Memory::zeroed((COUNT * LEN) as usize);
    let key = expose(world, &there);
    let from = Memory::pattern((COUNT * LEN) as usize, 8);
    for each in 0..COUNT {
        access(world, each, Act::Put, (key, &there, LEN * each), from.segments().slice(LEN * each, LEN));
    }
    let to = world.id(B);
    world.post(A, Order::Close { to });
    world.until("the loss", |w| w.lost(A));
    let reported = came(world);
    assert_eq!(reported.len(), COUNT as usize, "each has ended before the loss was reported");
    for (request, came) in reported.into_iter().filter(|(_, came)| *came == Came::Done) {
        let range = (request * LEN) as usize..((request + 1) * LEN) as usize;
        assert!(there.bytes()[range.clone()] == from.bytes()[range], "{request} is {came:?}");
    }
    world.until("the loss at the other side", |w| w.is_alone() || w.lost(B));
    world.rail(B).conceal(key);
    // Accesses that complete after this are too late.
    let mut there = there;
    there.fill(9);
    (0..1000).for_each(|_| [A, B].into_iter().for_each(|side| world.poll(side)));
    assert!(there.bytes() == Memory::pattern(there.bytes().len(), 9).bytes());
    world.kept.extend([there, from]);
}
