//! Tests with a peer that breaks the protocol in shared memory, with links that fail to open or open
//! out of order, and with chunks that one side copies, or that fill the bounce buffer.

mod blocks;
mod loom;
mod oversubscribed;
mod withdrawn;

use crate::conformance::memory::Memory;
use crate::node::claim::{self, Round};
use crate::shm::layout::{BOUNCE, CELLS, PACKET};
use crate::shm::ring::CONTENT;
use crate::shm::ring::cell::{self, Chunk, Range};
use crate::shm::selector::Method;
use crate::shm::{ShmConfig, ShmRail};
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, How, Interest, Order, Scope, Sent};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn rail(rank: u32, secret: [u8; 32]) -> ShmRail {
    let bound = Duration::from_millis(300);
    ShmRail::open(ShmConfig { bound, ..ShmConfig::new(PeerId(rank), 0, secret) }).expect("a rail opens")
}

/// Polls both rails until the first reports a wanted event.
pub fn until<T>(rails: &mut [ShmRail; 2], mut wanted: impl FnMut(&Event<'_>) -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        let mut found = None;
        rails[0].poll(Scope::All, &mut |event| found = found.take().or_else(|| wanted(&event)));
        if let Some(found) = found {
            return found;
        }
        rails[1].poll(Scope::All, &mut |_| ());
        assert!(begun.elapsed() < Duration::from_secs(5), "timed out");
    }
}

pub fn introduced(secrets: [[u8; 32]; 2]) -> [ShmRail; 2] {
    let mut rails = [rail(0, secrets[0]), rail(1, secrets[1])];
    let addresses = [rails[0].address(), rails[1].address()];
    for (rank, rail) in rails.iter_mut().enumerate() {
        assert!(rail.know(PeerId(1 - rank as u32), 0, &addresses[1 - rank]));
    }
    rails[0].send(Departure::Order(Order::Connect { to: PeerId(1) }));
    rails
}

pub fn connected() -> [ShmRail; 2] {
    opened(introduced([[5; 32]; 2]))
}

pub fn opened(mut rails: [ShmRail; 2]) -> [ShmRail; 2] {
    until(&mut rails, |event| matches!(event, Event::Up { .. }).then_some(()));
    while rails[1].peers.link(PeerId(0)).is_none() {
        rails[1].poll(Scope::All, &mut |_| ());
    }
    rails
}

/// Returns whether a message was injected.
pub fn inject(rail: &mut ShmRail, to: PeerId, head: &[u64], data: &Segments) -> bool {
    rail.send(Departure::Message { to, number: 0, head, data, how: How::Inject }) == Sent::Done
}

#[test]
fn packets_are_injected_while_the_ring_has_room_and_not_past_one_that_waits() {
    let mut rails = connected();
    let nothing = Segments::empty();
    let injected = (0..).find(|_| !inject(&mut rails[0], PeerId(1), &[1; 7], &nothing));
    assert_eq!(injected, Some(CELLS), "each takes a cell, and the peer reads none");
    let packet = nmad_engine::Packet { bytes: vec![2; 40], in_place: Vec::new() };
    rails[0].send(Departure::Order(Order::Packet { to: PeerId(1), number: 0, packet }));
    rails[1].poll(Scope::All, &mut |_| ());
    assert!(!inject(&mut rails[0], PeerId(1), &[3; 7], &nothing), "one that was posted waits");
    until(&mut rails, |event| matches!(event, Event::Sent { .. }).then_some(()));
    assert!(inject(&mut rails[0], PeerId(1), &[3; 7], &nothing));
}

#[test]
fn injected_packets_of_each_length_arrive_whole() {
    let mut rails = connected();
    // More than once round the ring, and across its end with a row of each length.
    for (turn, len) in (0..400).map(|turn| (turn, turn as usize % 320)) {
        let memory = Memory::pattern(len, turn);
        assert!(inject(&mut rails[0], PeerId(1), &[turn; 5], &memory.segments()));
        let mut expected = [turn; 5].map(u64::to_ne_bytes).concat();
        expected.extend(memory.bytes());
        let mut came = 0;
        rails[1].poll(Scope::All, &mut |event| match event {
            Event::Arrived { packet, .. } => {
                assert_eq!(packet, expected, "{len} B");
                came += 1;
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(came, 1);
    }
}

/// Polls for packets of the other rank only; returns the result of the poll, and the packet.
fn look(rail: &mut ShmRail, from: PeerId) -> (bool, Option<Vec<u8>>) {
    let mut came = None;
    let told = rail.poll(Scope::Peer(from), &mut |event| match event {
        Event::Arrived { packet, .. } if came.is_none() => came = Some(packet.to_vec()),
        other => panic!("{other:?}"),
    });
    (told, came)
}

#[test]
fn a_packet_is_looked_for_where_one_is_expected_alone() {
    let mut rails = connected();
    let nothing = Segments::empty();
    assert_eq!(look(&mut rails[1], PeerId(0)), (false, None), "nothing is known yet");
    assert!(inject(&mut rails[0], PeerId(1), &[7; 5], &nothing));
    rails[1].poll(Scope::All, &mut |_| ());
    // Lengths for one cell, for a row of cells, and for the bounce buffer.
    for (turn, len) in (0..400).map(|turn| (turn, turn as usize * 13 % 3000)) {
        assert!(inject(&mut rails[1], PeerId(0), &[7; 5], &nothing));
        rails[0].poll(Scope::All, &mut |_| ());
        assert_eq!(look(&mut rails[1], PeerId(0)), (true, None));
        let memory = Memory::pattern(len, turn);
        assert!(inject(&mut rails[0], PeerId(1), &[turn; 5], &memory.segments()));
        let mut expected = [turn; 5].map(u64::to_ne_bytes).concat();
        expected.extend(memory.bytes());
        assert!(look(&mut rails[1], PeerId(0)) == (true, Some(expected)), "{len} B");
        assert_eq!(look(&mut rails[1], PeerId(0)), (false, None), "no other one is expected");
    }
}

pub fn lost(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Lost { why, .. } => Some(why.clone()),
        Event::Arrived { .. } | Event::Landed { .. } => panic!("taken: {event:?}"),
        _ => None,
    }
}

/// Returns the error that rank 0 reports when rank 1 writes this cell.
fn after(kind: u8, value: u32, content: &[u8]) -> String {
    let mut rails = connected();
    let memory = Memory::zeroed(8192);
    let key = rails[0].open(RegionId(7), PeerId(1), memory.segments());
    assert_eq!(key, Key(1), "the first key");
    let mut whole = [0; CONTENT];
    whole[..content.len()].copy_from_slice(content);
    rails[1].peers.link_mut(PeerId(0)).expect("a link").push(kind, value, &whole);
    let why = until(&mut rails, lost);
    assert!(memory.bytes().iter().all(|byte| *byte == 0), "the region is untouched");
    why
}

const CHUNK: Chunk = Chunk {
    number: 0,
    ack: 7,
    region: RegionId(7),
    key: Key(1),
    offset: 0,
    len: 4096,
    address: 0,
    pieces: 1,
};

#[test]
fn impossible_cells_end_the_link_and_touch_nothing() {
    let outside = Range { start: BOUNCE - 1, of: 0, at: 0 };
    let cells: [(u8, u32, &[u8]); 10] = [
        (0, 0, &[]),
        (9, 0, &[]),
        (cell::PACKET, 57, &[0; 56]),
        (cell::PACKET, (cell::ROW * CONTENT) as u32 + 1, &[0; 56]),
        (cell::BOUNCED_PACKET, 100, &BOUNCE.to_le_bytes()),
        (cell::BOUNCED_PACKET, PACKET as u32 + 1, &0u32.to_le_bytes()),
        (cell::CHUNK, 0, &Chunk { offset: u64::MAX, ..CHUNK }.encode()),
        (cell::CHUNK, 0, &Chunk { len: u64::MAX >> 1, ..CHUNK }.encode()),
        (cell::PART, 100, &outside.encode()),
        (cell::PART, 100, &Range { start: 0, ..outside }.encode()),
    ];
    for (kind, value, content) in cells {
        let why = after(kind, value, content);
        assert!(why.contains("peer 1 broke the protocol"), "{kind} {value}: {why}");
    }
}

#[test]
fn a_chunk_past_the_end_of_its_region_ends_the_link() {
    for chunk in [Chunk { offset: 8000, ..CHUNK }, Chunk { len: 8193, ..CHUNK }] {
        let why = after(cell::CHUNK, 0, &chunk.encode());
        assert!(why.contains("past the end of its region"), "{why}");
    }
}

#[test]
fn a_chunk_at_addresses_that_are_not_there_ends_the_link() {
    let mut rails = connected();
    let memory = Memory::zeroed(8192);
    rails[0].open(RegionId(7), PeerId(1), memory.segments());
    let link = rails[1].peers.link_mut(PeerId(0)).expect("a link");
    let (segment, end) = (&link.shared.segment, link.shared.end);
    claim::begin(segment.word(end.claim(0)), Round::of(0), CHUNK.len, false);
    link.push(cell::CHUNK, 0, &Chunk { address: 4096, ..CHUNK }.encode());
    let why = until(&mut rails, lost);
    assert!(why.contains("cannot be read from"), "{why}");
}

#[test]
fn impossible_acknowledgements_end_the_link() {
    let mut rails = connected();
    let link = rails[1].peers.link_mut(PeerId(0)).expect("a link");
    link.shared.segment.word(link.shared.end.taken()).store(1 << 20, Ordering::Release);
    // Enough cells to make the other side read the separate word.
    for number in 0..300 {
        let packet = nmad_engine::packet::Packet { bytes: vec![0; 20], in_place: Vec::new() };
        rails[0].send(Departure::Order(Order::Packet { to: PeerId(1), number, packet }));
    }
    let why = until(&mut rails, lost);
    assert!(why.contains("took cells that were not there"), "{why}");
}

#[test]
fn another_secret_is_refused() {
    let mut rails = introduced([[5; 32], [6; 32]]);
    let why = until(&mut rails, lost);
    assert!(why.contains("peer 1") && why.contains("secret"), "{why}");
}

#[test]
fn a_peer_that_is_gone_is_reported_as_such() {
    let mut rails = introduced([[5; 32]; 2]);
    rails[1] = rail(1, [5; 32]);
    let why = until(&mut rails, lost);
    assert!(why.contains("no process listens") || why.contains("answer"), "{why}");
}

#[test]
fn silent_strangers_do_not_block_peers() {
    let mut rails = [rail(0, [5; 32]), rail(1, [5; 32])];
    let name = rails[0].address();
    let name = name.rsplit('/').next().expect("a name").as_bytes().to_vec();
    let connect = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let fd = fd.expect("a socket");
        let at = SocketAddrUnix::new_abstract_name(&name).expect("a name");
        rustix::net::connect(&fd, &at).expect("the rail listens");
        fd
    };
    let silent: Vec<_> = (0..300).map(|_| connect()).collect();
    let foreign: Vec<_> = (0..10).map(|_| connect()).collect();
    for fd in &foreign {
        rustix::io::write(fd, b"GET / HTTP/1.0\r\n\r\n").expect("a few bytes");
    }
    let addresses = [rails[0].address(), rails[1].address()];
    assert!(rails[0].know(PeerId(1), 0, &addresses[1]) && rails[1].know(PeerId(0), 0, &addresses[0]));
    let begun = Instant::now();
    rails[1].config.bound = Duration::from_secs(5);
    rails[1].send(Departure::Order(Order::Connect { to: PeerId(0) }));
    until(&mut rails, |event| matches!(event, Event::Up { .. }).then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    drop(silent);
}

#[test]
fn a_peer_that_is_slow_to_answer_is_waited_for_and_one_that_dies_is_not() {
    let mut rails = introduced([[5; 32]; 2]);
    let begun = Instant::now();
    while begun.elapsed() < 2 * rails[0].config.bound {
        rails[0].poll(Scope::All, &mut |event| panic!("{event:?}"));
    }
    until(&mut rails, |event| matches!(event, Event::Up { .. }).then_some(()));
    let [mut a, gone] = introduced([[5; 32]; 2]);
    a.poll(Scope::All, &mut |event| panic!("{event:?}"));
    drop(gone);
    let mut rails = [a, rail(2, [5; 32])];
    let why = until(&mut rails, |event| match event {
        Event::Lost { why, .. } => Some(why.clone()),
        _ => None,
    });
    assert!(why.contains("is gone"), "{why}");
}

#[test]
fn addresses_of_other_machines_are_not_reached() {
    let mut rail = rail(0, [5; 32]);
    for address in ["10.0.0.1/24:500", "@elsewhere.1/nmad-00", ""] {
        assert!(!rail.know(PeerId(1), 0, address), "{address}");
    }
}

/// Sends a chunk of 4 MiB from rank 1 to a receive region of rank 0, while only rank `looks` polls. With
/// `ends`, rank 1 ends when it has sent the chunk.
fn alone(looks: usize, ends: bool) {
    let mut rails = connected();
    let (source, target) = (Memory::pattern(4 << 20, 3), Memory::zeroed(4 << 20));
    let key = rails[0].open(RegionId(7), PeerId(1), target.segments());
    let (to, region, from) = (PeerId(0), RegionId(7), source.segments());
    rails[1].send(Departure::Order(Order::Chunk { to, number: 0, ack: 7, region, key, offset: 0, from }));
    let begun = Instant::now();
    let mut done = false;
    while !done {
        rails[looks].poll(Scope::All, &mut |event| match event {
            Event::Landed { kept, .. } => done = kept,
            Event::Sent { .. } => done = true,
            Event::Lost { why, .. } => panic!("{why}"),
            _ => {}
        });
        assert!(begun.elapsed() < Duration::from_secs(5), "timed out");
    }
    if looks == 1 {
        if ends {
            rails[1] = rail(1, [5; 32]);
        }
        // The receiver copies the parts in bounce buffers. When it checks its sockets, it finds that the
        // other has ended.
        while done {
            rails[0].wakeup(Interest::Links);
            rails[0].poll(Scope::All, &mut |event| match event {
                Event::Landed { .. } => done = false,
                Event::Lost { why, .. } if done => panic!("{why}"),
                _ => {}
            });
            rails[1].poll(Scope::All, &mut |_| ());
            assert!(begun.elapsed() < Duration::from_secs(5), "timed out");
        }
    }
    assert!(source.bytes() == target.bytes());
}

/// Exchanges a chunk of `len` bytes from each of these ranks; returns the methods that were used. `pushed`:
/// each chunk is sent before its receiver has posted a region.
pub fn turn(
    rails: &mut [ShmRail; 2],
    number: u32,
    senders: &[usize],
    (len, pushed): (usize, bool),
) -> Vec<Method> {
    let memories = [0, 1].map(|rank| (Memory::pattern(len, u64::from(number) + rank), Memory::zeroed(len)));
    let (region, peer) = (RegionId(u64::from(number)), |rank: usize| PeerId(1 - rank as u32));
    let mut ways = Vec::new();
    for &rank in senders {
        let (to, from) = (peer(rank), memories[rank].0.segments());
        let target = memories[1 - rank].1.segments();
        let key = if pushed { Key::PUSH } else { rails[1 - rank].open(region, peer(1 - rank), target) };
        rails[rank].send(Departure::Order(Order::Chunk { to, number, ack: 0, region, key, offset: 0, from }));
        ways.extend(rails[rank].peers.link(to).and_then(|link| Some(link.outgoing.chunks.back()?.method)));
    }
    let (begun, mut left) = (Instant::now(), 2 * senders.len());
    while left > 0 {
        for (rank, rail) in rails.iter_mut().enumerate() {
            let mut comes = false;
            rail.poll(Scope::All, &mut |event| match event {
                Event::Landed { .. } | Event::Sent { .. } => left -= 1,
                Event::Pushed { .. } => comes = true,
                Event::Lost { why, .. } => panic!("{why}"),
                _ => {}
            });
            if comes {
                rail.open(region, peer(rank), memories[rank].1.segments());
                rail.send(Departure::Order(Order::Accept { from: peer(rank), region }));
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "timed out");
    }
    for &rank in senders {
        rails[1 - rank].close(region);
        assert!(memories[rank].0.bytes() == memories[1 - rank].1.bytes(), "chunk {number} of rank {rank}");
    }
    ways
}

#[test]
fn exchanges_are_predicted_from_recent_chunks() {
    // All of a short pushed chunk is in bounce buffers before its sender sees the other one.
    for kind in [(1 << 20, false), (1 << 18, true), (40_000, true)] {
        let mut rails = connected();
        let expects_crossing = |rails: &mut [ShmRail; 2]| {
            [0, 1].map(|rank| {
                let link = rails[rank].peers.link_mut(PeerId(1 - rank as u32)).expect("a link");
                link.outgoing.exchange.is_likely()
            })
        };
        (1..9).for_each(|number| drop(turn(&mut rails, number, &[0, 1], kind)));
        assert_eq!(expects_crossing(&mut rails), [true; 2], "both see it");
        if rails[0].peers.link(PeerId(1)).expect("a link").shared.peer_can() {
            assert_eq!(turn(&mut rails, 17, &[0, 1], kind), [Method::Cma; 2], "each is pulled");
        }
        (9..13).for_each(|number| drop(turn(&mut rails, number, &[0], kind)));
        (13..17).for_each(|number| drop(turn(&mut rails, number, &[1], kind)));
        assert_eq!(expects_crossing(&mut rails), [false; 2], "one direction is no exchange");
    }
}

#[test]
fn a_receiver_alone_completes_a_chunk() {
    alone(0, false);
}

#[test]
fn a_sender_alone_completes_a_chunk() {
    alone(1, false);
}

#[test]
fn a_chunk_arrives_though_its_sender_ends() {
    alone(1, true);
}

#[test]
fn a_pushed_chunk_arrives_though_its_sender_ends() {
    let mut rails = connected();
    let (source, target) = (Memory::pattern(40_000, 3), Memory::zeroed(40_000));
    let (to, region, from) = (PeerId(0), RegionId(9), source.segments());
    let chunk = Order::Chunk { to, number: 0, ack: 0, region, key: Key::PUSH, offset: 0, from };
    rails[1].send(Departure::Order(chunk));
    let (begun, mut done) = (Instant::now(), false);
    while !done {
        rails[1].flush();
        rails[1].poll(Scope::All, &mut |event| done |= matches!(event, Event::Sent { .. }));
        assert!(begun.elapsed() < Duration::from_secs(5), "it fits into the bounce buffer");
    }
    rails[1] = rail(1, [5; 32]);
    while done {
        // The same poll reports the chunk and the end of its sender.
        rails[0].wakeup(Interest::Links);
        let mut pushed = false;
        rails[0].poll(Scope::All, &mut |event| match event {
            Event::Pushed { len, .. } => pushed = len == 40_000,
            Event::Landed { kept, .. } => done = !kept,
            Event::Lost { why, .. } if done => panic!("{why}"),
            _ => {}
        });
        if pushed {
            rails[0].open(RegionId(7), PeerId(1), target.segments());
            rails[0].send(Departure::Order(Order::Accept { from: PeerId(1), region: RegionId(7) }));
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "timed out");
    }
    assert!(source.bytes() == target.bytes());
}

#[test]
fn a_sender_pushes_once_it_knows_the_region() {
    const LEN: usize = 256 << 10;
    let mut rails = connected();
    assert!(rails[1].peers.link(PeerId(0)).expect("a link").shared.peer_can(), "the same process");
    let (begun, mut across) = (Instant::now(), 0);
    for number in 0..30 {
        let (source, target) = (Memory::pattern(LEN, u64::from(number)), Memory::zeroed(LEN));
        let (to, region, from) = (PeerId(0), RegionId(u64::from(number)), source.segments());
        rails[1].send(Departure::Order(Order::Chunk {
            to,
            number,
            ack: 0,
            region,
            key: Key::PUSH,
            offset: 0,
            from,
        }));
        let link = rails[1].peers.link(to).expect("a link");
        let goes_across = link.outgoing.chunks.back().is_some_and(|out| out.method == Method::Cma);
        let [mut comes, mut sent, mut landed] = [false; 3];
        while !comes {
            rails[0].poll(Scope::All, &mut |event| comes |= matches!(event, Event::Pushed { .. }));
            assert!(begun.elapsed() < Duration::from_secs(20), "its cell is there");
        }
        rails[0].open(region, PeerId(1), target.segments());
        rails[0].send(Departure::Order(Order::Accept { from: PeerId(1), region }));
        while !(sent && landed) {
            // Only the sender polls, and completes a single copy.
            if sent || !goes_across {
                rails[0].poll(Scope::All, &mut |event| landed |= matches!(event, Event::Landed { .. }));
            }
            rails[1].poll(Scope::All, &mut |event| sent |= matches!(event, Event::Sent { .. }));
            assert!(begun.elapsed() < Duration::from_secs(20), "{number} goes across: {goes_across}");
        }
        rails[0].close(region);
        across += u32::from(goes_across);
        assert!(source.bytes() == target.bytes());
    }
    assert!(across > 0, "each way is tried");
}
