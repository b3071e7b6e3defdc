//! Cases about links: how they open and end.

use super::memory::Memory;
use super::world::{A, B, Seen, World};
use nmad_engine::packet::{Key, RegionId};
use nmad_engine::transfer::driver::Order;
use std::time::{Duration, Instant};

pub(super) fn comes_up(world: &mut World) {
    let to = world.id(B);
    world.post(A, Order::Connect { to });
    world.until("the link is up on both sides", |w| w.count_up(A) > 0 && w.count_up(B) > 0);
    for side in [A, B] {
        let (peer, remote) = (world.id(1 - side), world.number(1 - side));
        let seen = world.seen(side);
        assert!(matches!(seen, [Seen::Up(p, r)] if (*p, *r) == (peer, remote)), "{seen:?}");
    }
}

pub(super) fn crossed(world: &mut World) {
    for side in [A, B] {
        let to = world.id(1 - side);
        world.post(side, Order::Connect { to });
    }
    world.until("the link is up on both sides", |w| w.count_up(A) > 0 && w.count_up(B) > 0);
    for round in 0..50u32 {
        [A, B].iter().for_each(|side| world.post_packet(*side, round, 64));
        let count = round as usize + 1;
        world.until("packets in both directions", |w| {
            [A, B].iter().all(|side| w.arrived(*side) == count && w.sent(*side) == count)
        });
    }
    for side in [A, B] {
        assert_eq!(world.count_up(side), 1, "up once");
        assert!(!world.lost(side), "no link is lost: {:?}", world.seen(side));
    }
}

pub(super) fn peer_ends(world: &mut World) {
    world.connect();
    let source = Memory::zeroed(32 << 20);
    // The peer does not read, so not all of this can be sent.
    let count = world.limits().depth.min(3) as u32;
    for number in 0..count {
        world.post_chunk(number, RegionId(1), Key(1), 0, &source);
    }
    for _ in 0..100 {
        world.poll(A);
    }
    world.end(B);
    let begun = Instant::now();
    world.until("the link is lost", |w| w.lost(A));
    assert!(begun.elapsed() < Duration::from_secs(5), "found within 5 s");
    let mut numbers = Vec::new();
    for seen in world.seen(A) {
        match seen {
            Seen::Sent(number, _) => numbers.push(*number),
            Seen::Lost(why, unsent) => {
                assert!(why.contains("peer 1") && why.contains(' '), "the reason names the peer: {why}");
                numbers.extend(unsent);
            }
            other => panic!("not expected: {other:?}"),
        }
    }
    numbers.sort_unstable();
    let expected: Vec<_> = (0..count).collect();
    assert_eq!(numbers, expected, "each order is either sent or returned");
    world.kept.push(source);
}

pub(super) fn closes(world: &mut World) {
    world.connect();
    world.post_packet(A, 0, 100);
    let to = world.id(B);
    world.post(A, Order::Close { to });
    world.until("the other side finds out", |w| w.lost(B));
    world.until("the order is answered", |w| w.lost(A));
    let numbers = world.sent(A) + world.returned(A);
    assert_eq!(numbers, 1, "the packet is either sent or returned: {:?}", world.seen(A));
    world.forget();
    world.connect();
    world.post_packet(A, 0, 100);
    world.until("a packet", |w| w.arrived(B) == 1 && w.sent(A) == 1);
    world.check_arrived(B, &[(0, 100)]);
}
