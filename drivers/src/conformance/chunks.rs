//! Cases about chunks and receive regions.

use super::memory::Memory;
use super::world::{A, B, Seen, World};
use nmad_engine::packet::{Key, RegionId};
use nmad_engine::transfer::driver::Order;

const REGION: RegionId = RegionId(0xABCD_0000_0001);

pub(super) fn gather(world: &mut World) {
    world.connect();
    let (to, from) = (world.id(B), world.id(A));
    let source = Memory::pattern(300_000, 1);
    let target = Memory::zeroed(400_000);
    // Pieces of different lengths on both sides, in another order than in memory.
    let into = target.pieces(&[200_000..399_999, 0..1, 7..50_000, 60_000..60_011, 100_000..199_000]);
    let key = world.rail(B).open(REGION, from, into.clone());
    let out = source.pieces(&[150_000..300_000, 0..3, 10..100_000, 100_001..100_002]);
    let len = out.len();
    let mut offset = 0;
    for (number, part) in [1, 77_777, 4096, 100_000, 1 << 30].into_iter().enumerate() {
        let from = out.slice(offset, part);
        let part = from.len();
        let number = number as u32;
        world.post(A, Order::Chunk { to, number, ack: 7, region: REGION, key, offset, from });
        let done = number as usize + 1;
        world.until("one chunk", |w| w.landed(B) == done && w.sent(A) == done);
        assert!(matches!(world.seen(B).last(), Some(Seen::Landed(n, REGION, at, l, true))
            if (*n, *at, *l) == (number, offset, part)));
        offset += part;
    }
    let (mut sent, mut landed) = (Vec::new(), Vec::new());
    out.append_to(&mut sent);
    into.slice(0, len).append_to(&mut landed);
    assert!(sent == landed, "the bytes are the same");
    assert!(target.bytes()[50_000..60_000].iter().all(|b| *b == 0), "nothing between the pieces");
    world.rail(B).close(REGION);
    world.kept.extend([source, target]);
}

pub(super) fn mapped_anew(world: &mut World) {
    world.connect();
    let (to, from) = (world.id(B), world.id(A));
    let (mut source, mut target) = (Memory::zeroed(3 << 20), Memory::zeroed(3 << 20));
    for number in 0..6 {
        if number % 2 == 1 {
            source.map_anew();
            target.map_anew();
        }
        source.fill(u64::from(number));
        let region = RegionId(REGION.0 + u64::from(number));
        let key = world.rail(B).open(region, from, target.segments());
        let from = source.segments();
        world.post(A, Order::Chunk { to, number, ack: 7, region, key, offset: 0, from });
        let done = number as usize + 1;
        world.until("one chunk", |w| w.landed(B) == done && w.sent(A) == done);
        world.rail(B).close(region);
        assert!(source.bytes() == target.bytes(), "chunk {number} is what the sender's memory holds now");
    }
    world.kept.extend([source, target]);
}

pub(super) fn among_packets(world: &mut World) {
    world.connect();
    let from = world.id(A);
    let source = Memory::pattern(8 << 20, 2);
    let target = Memory::zeroed(source.bytes().len());
    let key = world.rail(B).open(REGION, from, target.segments());
    let depth = world.limits().depth;
    let (mut posted, mut expected) = (0, Vec::new());
    for round in 0..4 {
        for len in [20, 70, 30_000, 64] {
            let len = len.min(world.limits().packet);
            world.until("room", |w| posted < w.sent(A) + depth);
            world.post_packet(A, posted as u32, len);
            expected.push((posted as u32, len));
            posted += 1;
        }
        let part = source.segments().slice(round * (2 << 20), 2 << 20);
        world.until("room", |w| posted < w.sent(A) + depth);
        let (to, number, offset) = (world.id(B), posted as u32, round * (2 << 20));
        world.post(A, Order::Chunk { to, number, ack: 7, region: REGION, key, offset, from: part });
        posted += 1;
    }
    world.until("everything", |w| w.landed(B) == 4 && w.arrived(B) == 16 && w.sent(A) == 20);
    world.check_arrived(B, &expected);
    assert!(source.bytes() == target.bytes(), "the bytes are the same");
    let chunk_at = world.seen(B).iter().position(|seen| matches!(seen, Seen::Landed(..)));
    let before = world.seen(B)[..chunk_at.unwrap_or(0)].iter();
    let before = before.filter(|seen| matches!(seen, Seen::Arrived(..))).count();
    assert_eq!(before, 4, "packets posted before a chunk arrive before it, those behind it later");
    world.kept.extend([source, target]);
}

pub(super) fn empty(world: &mut World) {
    world.connect();
    let from = world.id(A);
    let nothing = Memory::zeroed(0);
    let target = Memory::zeroed(10);
    let key = world.rail(B).open(REGION, from, target.segments());
    world.post_chunk(0, REGION, key, 10, &nothing);
    world.until("the chunk", |w| w.landed(B) == 1 && w.sent(A) == 1);
    assert!(matches!(world.seen(B).last(), Some(Seen::Landed(0, REGION, 10, 0, true))));
    world.kept.extend([nothing, target]);
}

pub(super) fn not_open(world: &mut World) {
    world.connect();
    let source = Memory::pattern(300_000, 3);
    world.post_chunk(0, REGION, Key(12345), 77, &source);
    world.post_packet(A, 1, 64);
    world.until("both", |w| w.landed(B) == 1 && w.arrived(B) == 1 && w.sent(A) == 2);
    let landed = world.seen(B).iter().find(|seen| matches!(seen, Seen::Landed(..)));
    assert!(matches!(landed, Some(Seen::Landed(0, REGION, 77, 300_000, false))), "{landed:?}");
    world.check_arrived(B, &[(1, 64)]);
    world.kept.push(source);
}

pub(super) fn stale_key(world: &mut World) {
    world.connect();
    let from = world.id(A);
    let source = Memory::pattern(100_000, 4);
    let target = Memory::zeroed(100_000);
    let stale = world.rail(B).open(REGION, from, target.segments());
    world.rail(B).close(REGION);
    let key = world.rail(B).open(REGION, from, target.segments());
    assert_ne!(key, stale, "a key is given out once");
    world.post_chunk(0, REGION, stale, 0, &source);
    world.until("the chunk", |w| w.landed(B) == 1 && w.sent(A) == 1);
    assert!(matches!(world.seen(B).last(), Some(Seen::Landed(.., false))), "discarded");
    assert!(target.bytes().iter().all(|b| *b == 0), "untouched");
    world.kept.extend([source, target]);
}

pub(super) fn closed_in_the_middle(world: &mut World) {
    world.connect();
    let from = world.id(A);
    let source = Memory::pattern(16 << 20, 5);
    let mut target = Memory::zeroed(source.bytes().len());
    let key = world.rail(B).open(REGION, from, target.segments());
    world.post_chunk(0, REGION, key, 0, &source);
    let begun = |memory: &Memory| memory.bytes()[..64] == source.bytes()[..64];
    world.until("the chunk begins to land", |w| begun(&target) || w.landed(B) > 0);
    world.rail(B).close(REGION);
    target.bytes_mut().fill(0xEE);
    world.post_packet(A, 1, 64);
    world.until("everything", |w| w.landed(B) == 1 && w.arrived(B) == 1 && w.sent(A) == 2);
    assert!(target.bytes() == vec![0xEE; target.bytes().len()], "the memory is not touched after closing");
    world.check_arrived(B, &[(1, 64)]);
    world.kept.extend([source, target]);
}

pub(super) fn both_ways(world: &mut World) {
    world.connect();
    let len = 4 << 20;
    let memory: Vec<_> = (0..2).map(|seed| (Memory::pattern(len, seed), Memory::zeroed(len))).collect();
    for side in [A, B] {
        let (to, me) = (world.id(1 - side), world.id(side));
        let key = world.rail(1 - side).open(REGION, me, memory[side].1.segments());
        let from = memory[side].0.segments();
        world.post(side, Order::Chunk { to, number: 0, ack: 7, region: REGION, key, offset: 0, from });
        world.post_packet(side, 1, 1000);
    }
    world
        .until("both", |w| [A, B].iter().all(|s| w.landed(*s) == 1 && w.arrived(*s) == 1 && w.sent(*s) == 2));
    assert!(memory.iter().all(|(source, target)| source.bytes() == target.bytes()), "the bytes are the same");
    world.kept.extend(memory.into_iter().flat_map(|(source, target)| [source, target]));
}
