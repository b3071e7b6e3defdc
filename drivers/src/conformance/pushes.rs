//! Cases about pushed chunks, for rails that can hold them.

use super::memory::Memory;
use super::world::{A, B, Seen, World, packet};
use nmad_engine::packet::{Key, RegionId};
use nmad_engine::transfer::driver::{Departure, Order, Sent};

const REGION: RegionId = RegionId(0xABCD_0000_0002);
const REQUEST: RegionId = RegionId(0x77_0000_0001);

fn pushed(world: &World) -> usize {
    world.seen(B).iter().filter(|seen| matches!(seen, Seen::Pushed(..))).count()
}

/// Polls often enough for anything that is not held to arrive.
fn wait(world: &mut World) {
    for _ in 0..200 {
        world.poll(A);
        world.poll(B);
    }
}

pub(super) fn held(world: &mut World) {
    world.connect();
    for len in [1, 100, 5_000, 300_000, 1 << 20] {
        world.forget();
        let source = Memory::pattern(len, 1);
        let target = Memory::zeroed(len + 10);
        world.post_packet(A, 0, 40);
        world.post_chunk(1, REQUEST, Key::PUSH, 0, &source);
        world.post_packet(A, 2, 200);
        world.until("the chunk is announced", |w| pushed(w) == 1);
        wait(world);
        let told = (REQUEST.0, len as u64);
        assert!(
            matches!(world.seen(B), [Seen::Arrived(..), Seen::Pushed(r, l)] if (*r, *l) == told),
            "nothing passes a chunk of {len} B that is held"
        );
        let from = world.id(A);
        world.rail(B).open(REGION, from, target.segments());
        world.order(B, Order::Accept { from, region: REGION });
        world.until("the rest", |w| w.landed(B) == 1 && w.arrived(B) == 2 && w.sent(A) == 3);
        assert!(matches!(world.seen(B)[2], Seen::Landed(1, REGION, 0, l, true) if l == len as u64));
        assert!(target.bytes()[..len] == *source.bytes(), "the bytes of {len} are the same");
        assert!(target.bytes()[len..].iter().all(|byte| *byte == 0), "nothing behind them");
        world.check_arrived(B, &[(0, 40), (2, 200)]);
        world.rail(B).close(REGION);
        world.kept.extend([source, target]);
    }
}

pub(super) fn many(world: &mut World) {
    world.connect();
    let depth = world.limits().depth;
    let source = Memory::pattern(40_000, 2);
    let targets: Vec<Memory> = (0..30).map(|_| Memory::zeroed(40_000)).collect();
    let mut posted = 0;
    // Each one is accepted while the next ones wait behind it.
    while world.landed(B) < targets.len() {
        if posted < targets.len() && posted < world.sent(A) + depth {
            let request = RegionId(REQUEST.0 + posted as u64);
            world.post_chunk(posted as u32, request, Key::PUSH, 0, &source);
            posted += 1;
        } else {
            world.until("the next one is announced", |w| pushed(w) > w.landed(B));
            accept(world, &targets);
        }
    }
    assert!(targets.iter().all(|target| target.bytes() == source.bytes()), "the bytes are the same");
    world.kept.push(source);
    world.kept.extend(targets);
}

/// Accepts the held chunk and waits until it has arrived.
fn accept(world: &mut World, targets: &[Memory]) {
    accept_one(world, &targets[world.landed(B)]);
}

fn accept_one(world: &mut World, target: &Memory) {
    let landed = world.landed(B);
    let from = world.id(A);
    let region = RegionId(REGION.0 + landed as u64);
    world.rail(B).open(region, from, target.segments());
    world.order(B, Order::Accept { from, region });
    world.until("it lands", |w| w.landed(B) == landed + 1);
    world.rail(B).close(region);
}

/// Sends packets with a pushed chunk directly, with some posted ones between them.
pub(super) fn at_once(world: &mut World) {
    world.connect();
    let (to, mut sent) = (world.id(B), 0);
    for (turn, len) in
        [1, 100, 5_000, 70_000, 300_000, 3 << 20, 1000].into_iter().cycle().take(40).enumerate()
    {
        let (first, second) = (2 * turn as u32, 2 * turn as u32 + 1);
        let mut source = Memory::pattern(len, turn as u64);
        let target = Memory::zeroed(len);
        let chunk = Order::Chunk {
            to,
            number: second,
            ack: 7,
            region: REQUEST,
            key: Key::PUSH,
            offset: 0,
            from: source.segments(),
        };
        let how = match turn % 5 {
            3 => Sent::Retry,
            _ => world.rail(A).send(Departure::Pushed { packet: &packet(first, 40 + turn), chunk }),
        };
        if how == Sent::Retry {
            world.post_packet(A, first, 40 + turn);
            world.post_chunk(second, REQUEST, Key::PUSH, 0, &source);
        }
        // The memory of a completed push belongs to the sender again.
        let expected = source.bytes().to_vec();
        if how == Sent::Done {
            source.bytes_mut().fill(0);
        } else {
            sent += 2;
        }
        world.until("it is announced", |w| pushed(w) == turn + 1);
        accept_one(world, &target);
        world.until("all has left", |w| w.sent(A) == sent);
        assert!(target.bytes() == expected, "the bytes of {len} are the same");
        world.kept.extend([source, target]);
    }
    let arrived: Vec<_> = (0..40).map(|turn| (2 * turn as u32, 40 + turn)).collect();
    world.check_arrived(B, &arrived);
}

pub(super) fn discarded(world: &mut World) {
    world.connect();
    let source = Memory::pattern(200_000, 3);
    world.post_chunk(0, REQUEST, Key::PUSH, 0, &source);
    world.post_packet(A, 1, 64);
    world.until("the chunk is announced", |w| pushed(w) == 1);
    let from = world.id(A);
    world.order(B, Order::Accept { from, region: REGION });
    world.until("both", |w| w.landed(B) == 1 && w.arrived(B) == 1 && w.sent(A) == 2);
    let landed = world.seen(B).iter().find(|seen| matches!(seen, Seen::Landed(..)));
    assert!(matches!(landed, Some(Seen::Landed(0, REGION, 0, 200_000, false))), "{landed:?}");
    world.check_arrived(B, &[(1, 64)]);
    world.kept.push(source);
}
