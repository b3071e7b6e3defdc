//! Single copies that the system withdraws while chunks are under way.

use super::connected;
use crate::conformance::memory::Memory;
use crate::shm::ShmRail;
use crate::shm::selector::Method;
use nmad_engine::packet::{Key, Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use std::io;
use std::time::{Duration, Instant};

/// An event at the receiver.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Landed(u64),
    Pushed(u64),
    Packet(usize, u8),
}

fn link(rail: &mut ShmRail, peer: u32) -> &mut crate::shm::link::Link {
    rail.peers.link_mut(PeerId(peer)).expect("a link")
}

/// Rank 1 sends; the receiver has a region for each of two chunks, and none for a third.
struct World {
    rails: [ShmRail; 2],
    chunks: [(Memory, Memory); 3],
    expected: Vec<Seen>,
}

const LEN: usize = 300_000;

impl World {
    fn new() -> World {
        let chunks = [0, 1, 2].map(|seed| (Memory::pattern(LEN, seed), Memory::zeroed(LEN)));
        World { rails: connected(), chunks, expected: Vec::new() }
    }

    fn packet(&mut self, len: usize) {
        let content = self.expected.len() as u8;
        let packet = Packet { bytes: vec![content; len], in_place: Vec::new() };
        self.rails[1].send(Departure::Order(Order::Packet { to: PeerId(0), number: 0, packet }));
        self.expected.push(Seen::Packet(len, content));
    }

    /// `pushed`: the receiver opens its region when the chunk is announced.
    fn chunk(&mut self, place: usize, is_pushed: bool) {
        let (region, from) = (RegionId(place as u64), self.chunks[place].0.segments());
        let into = self.chunks[place].1.segments();
        let key = if is_pushed { Key::PUSH } else { self.rails[0].open(region, PeerId(1), into) };
        let (to, number) = (PeerId(0), place as u32);
        self.rails[1].send(Departure::Order(Order::Chunk {
            to,
            number,
            ack: 0,
            region,
            key,
            offset: 0,
            from,
        }));
        self.expected.extend(is_pushed.then_some(Seen::Pushed(place as u64)));
        self.expected.push(Seen::Landed(place as u64));
    }

    /// The method of the chunk that was sent last.
    fn method(&mut self) -> Option<Method> {
        link(&mut self.rails[1], 0).outgoing.chunks.back().map(|out| out.method)
    }

    /// Both sides find that they may not access each other's memory any more.
    fn withdraw(&mut self) {
        for (rank, rail) in self.rails.iter_mut().enumerate() {
            link(rail, 1 - rank as u32).lose_access(&io::Error::from(io::ErrorKind::PermissionDenied));
        }
    }

    /// Polls until all has arrived, in the order in which it was sent.
    fn finish(mut self) {
        let (begun, mut seen) = (Instant::now(), Vec::new());
        while seen.len() < self.expected.len() {
            self.rails[1].poll(Scope::All, &mut |_| ());
            let mut pushed = None;
            self.rails[0].poll(Scope::All, &mut |event| match event {
                Event::Landed { region, kept: true, .. } => seen.push(Seen::Landed(region.0)),
                Event::Arrived { packet, .. } => seen.push(Seen::Packet(packet.len(), packet[0])),
                Event::Pushed { request, .. } => {
                    seen.push(Seen::Pushed(request));
                    pushed = Some(RegionId(request));
                }
                Event::Moved { .. } => {}
                other => panic!("{other:?}"),
            });
            if let Some(region) = pushed {
                self.rails[0].open(region, PeerId(1), self.chunks[region.0 as usize].1.segments());
                self.rails[0].send(Departure::Order(Order::Accept { from: PeerId(1), region }));
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "timed out after {seen:?}");
        }
        assert_eq!(seen, self.expected);
        let landed = seen.iter().filter_map(|one| if let Seen::Landed(of) = one { Some(*of) } else { None });
        for place in landed {
            let (source, target) = &self.chunks[place as usize];
            assert!(source.bytes() == target.bytes(), "chunk {place}");
        }
        assert!(link(&mut self.rails[0], 1).aside.is_empty());
    }
}

/// Packets of any length, among them enough to fill the ring or the bounce buffer: the rest of the chunk then
/// has to wait for room.
#[test]
fn packets_behind_a_chunk_arrive_after_it_though_single_copies_are_withdrawn() {
    for (count, len) in [(1, 40), (250, 40), (60, 250), (1, 3_000), (9, 30_000)] {
        let mut world = World::new();
        // When oversubscribed, each chunk is copied once.
        link(&mut world.rails[1], 0).shared.is_oversubscribed = true;
        world.chunk(0, false);
        assert_eq!(world.method(), Some(Method::Cma));
        (0..count).for_each(|_| world.packet(len));
        world.withdraw();
        world.finish();
    }
}

/// The chunks behind the first are copied once too, or through bounce buffers from their beginning, and the
/// last has no receive region before all before it has arrived.
#[test]
fn chunks_and_packets_keep_their_order_when_single_copies_are_withdrawn() {
    for is_copied_once in [true, false] {
        let mut world = World::new();
        link(&mut world.rails[1], 0).shared.is_oversubscribed = true;
        world.chunk(0, false);
        world.packet(200);
        world.packet(2_000);
        world.chunk(1, false);
        world.packet(40);
        if !is_copied_once {
            // A link without single copies takes the bounce buffer.
            link(&mut world.rails[1], 0).outgoing.forget_targets();
            let denied = io::Error::from(io::ErrorKind::PermissionDenied);
            link(&mut world.rails[0], 1).lose_access(&denied);
        }
        world.chunk(2, true);
        assert_eq!(world.method() == Some(Method::Cma), is_copied_once);
        world.packet(50);
        world.withdraw();
        world.finish();
    }
}

/// No packet lies between the two, so the receiver reads the announcement of the pushed chunk, which
/// holds back all later cells, before it has the rest of the first chunk.
#[test]
fn a_pushed_chunk_directly_behind_a_chunk_does_not_hide_its_rest() {
    let mut world = World::new();
    link(&mut world.rails[1], 0).shared.is_oversubscribed = true;
    world.chunk(0, false);
    world.chunk(2, true);
    world.packet(300);
    world.expected.swap(0, 1);
    world.withdraw();
    world.finish();
}
