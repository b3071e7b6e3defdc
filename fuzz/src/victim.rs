//! A host in the middle of everything: what one of its peers sends is replaced by strange bytes.
//!
//! Host 0 is the victim, host 1 the stranger, host 2 a good peer. Between 0 and 1 there are receives posted,
//! unexpected messages, a rendezvous on its way in both directions, an Rtr in both directions and a
//! synchronous send; between 0 and 2 there is the same, and it has to go on.

use crate::heap;
use crate::net::memory::BufferId;
use crate::net::{Net, exact, from, limits, pattern};
use nmad_engine::{
    Config, Event, Hints, Instant, Key, PeerId, RailId, RegionId, RequestId, Source, TagMatch,
};
use nmad_wire::{ChunkHeader, Header, Kind};

const LARGE: usize = 50_000;
/// Limit of the heap that strange bytes may cost: a fixed part (most of it is what a peer may push without a
/// posted receive, its credit of 1 MiB), and a part for each byte.
const COST: isize = (1 << 20) + (96 << 10);
const COST_OF_BYTE: isize = 24;

pub struct Victim {
    net: Net,
    /// Messages from host 2 that have to arrive.
    expected: Vec<((RequestId, BufferId), Vec<u8>)>,
    before: isize,
    received: usize,
}

impl Victim {
    pub fn new() -> Victim {
        let (chunk, credit) = (8 << 10, 1 << 20);
        let config = Config { strategy: "greedy".into(), chunk, credit, ..Config::default() };
        let mut net = Net::new(3, &[limits(); 2], &config, 1);
        for peer in [1, 2] {
            rtrs(&mut net, peer);
        }
        let mut expected = Vec::new();
        for peer in [1, 2] {
            let list = begin(&mut net, peer);
            if peer == 2 {
                expected = list;
            }
        }
        net.stall(0, 1, true);
        net.stall(1, 1, true);
        (0..6).for_each(|_| {
            net.now += 1_000;
            for host in 0..3 {
                net.turn(host, true);
            }
        });
        let before = heap::live();
        Victim { net, expected, before, received: 0 }
    }

    /// Bytes arrive as if host 1 had sent them.
    pub fn receive(&mut self, packet: &[u8]) {
        let from = PeerId(1);
        let rail = RailId((self.received % 2) as u8);
        self.received += 1;
        let now = Instant::from_ns(self.net.now);
        let engine = &mut self.net.hosts[0].engine;
        let chunk = Header::decode(packet)
            .ok()
            .filter(|header| header.kind == Kind::Chunk)
            .and_then(|header| ChunkHeader::decode(header, packet).ok());
        match chunk {
            Some(ChunkHeader { region: request, key, len, .. }) if key == Key::PUSH.0 => {
                engine.handle(now, rail, Event::Pushed { from, request, len: u64::from(len) });
            }
            Some(ChunkHeader { number, ack, region, offset, len, .. }) => {
                let (region, len) = (RegionId(region), u64::from(len));
                engine.handle(
                    now,
                    rail,
                    Event::Landed { from, number, ack, region, offset, len, kept: true },
                );
            }
            None => engine.handle(now, rail, Event::Arrived { from, packet }),
        }
    }

    /// At most host 1 is closed, with one message; everything else goes on.
    pub fn check(mut self, len: usize) {
        let cost = heap::live() - self.before;
        assert!(cost <= COST + COST_OF_BYTE * len as isize, "{len} B cost {cost} B of heap");
        let net = &mut self.net;
        net.turn(0, true);
        let about = |notice: &&nmad_engine::Notice| notice.text.contains("malformed");
        let notices: Vec<_> = net.hosts[0].notices.iter().filter(about).cloned().collect();
        assert!(notices.len() <= 1 && notices.iter().all(|n| n.peer == PeerId(1)), "{notices:?}");
        assert_eq!(net.hosts[0].engine.inspect().failure(PeerId(2)), None);
        net.stall(0, 1, false);
        net.stall(1, 1, false);
        net.settle();
        for (recv, data) in &self.expected {
            assert!(net.got(0, *recv, data), "a message of host 2 did not arrive");
        }
        for len in [8, LARGE] {
            for (a, b) in [(0, 2), (2, 0)] {
                let recv = net.recv(b, from(a as u32), 7, exact(7), len);
                net.send(a, b as u32, 7, 7, &pattern(len, 7));
                net.settle();
                assert!(net.got(b, recv, &pattern(len, 7)), "{len} B from {a} to {b}");
            }
        }
        net.memory(|memory| memory.check());
    }
}

/// Both sides have a receive region open for the other that is not used.
fn rtrs(net: &mut Net, peer: u32) {
    let host = peer as usize;
    for (at, other) in [(0, peer), (host, 0)] {
        for round in 0..2 {
            net.recv(at, from(other), 3, exact(30), LARGE);
            net.settle();
            if round == 0 {
                net.send(other as usize, at as u32, 3, 30, &pattern(LARGE, 3));
                net.settle();
            }
        }
    }
}

/// Something of everything, of which nothing can end yet.
fn begin(net: &mut Net, peer: u32) -> Vec<((RequestId, BufferId), Vec<u8>)> {
    let host = peer as usize;
    let mut expected = Vec::new();
    net.send(host, 0, 1, 10, &[1; 8]);
    net.send(host, 0, 1, 11, &pattern(LARGE, 11));
    net.settle();
    net.send(0, peer, 1, 12, &pattern(LARGE, 12));
    net.send_with(0, peer, 1, 13, &[2; 100], Hints { synchronous: true, ..Hints::default() });
    net.settle();
    for (tag, len) in [(14, 16), (15, LARGE)] {
        expected.push((net.recv(0, from(peer), 1, exact(tag), len), pattern(len, tag)));
    }
    net.recv(0, Source::Any, 9, TagMatch::Any, 100);
    for (recv, data) in &expected {
        let tag = if data.len() == LARGE { 15 } else { 14 };
        net.send(host, 0, 1, tag, data);
        assert!(net.result(0, recv.0).is_none());
    }
    expected
}
