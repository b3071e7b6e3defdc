//! A single engine; the test plays its peers and writes the packets that arrive.

use crate::net::memory::{BufferId, Memory};
use nmad_engine::{
    Config, Context, Departure, Driver, Engine, Event, Instant, Key, Limits, Order, Packet, PeerId,
    PollScope, RailId, RegionId, RequestId, Segments, Sent, Source, Tag, TagMatch, pump,
};
use nmad_wire::{Eager, Frame, Header, Kind};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

pub const RAIL: RailId = RailId(0);
const NOW: Instant = Instant::from_ns(1);

/// Packets that the rail was given: receiver, number, packet.
type Given = Arc<Mutex<VecDeque<(PeerId, u32, Packet)>>>;

/// A rail that keeps what it is given.
struct KeepingRail(Given);

impl Driver for KeepingRail {
    fn name(&self) -> &str {
        "keeping"
    }
    fn limits(&self) -> Limits {
        Limits { packet: 16 << 10, chunk: 1 << 20, gather: 8, depth: 64, ..Limits::default() }
    }
    fn open(&mut self, region: RegionId, _: PeerId, _: Segments) -> Key {
        Key(region.0)
    }
    fn close(&mut self, _: RegionId) {}
    fn room(&self) -> usize {
        64
    }
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        let Departure::Order(order) = departure else { return Sent::Retry };
        if let Order::Packet { to, number, packet } = order {
            self.0.lock().unwrap().push_back((to, number, packet));
        }
        Sent::Posted
    }
    fn poll(&mut self, _: PollScope, _: &mut dyn FnMut(Event<'_>)) -> bool {
        true
    }
}

pub struct Lone {
    pub engine: Engine,
    rails: Vec<Box<dyn Driver>>,
    given: Given,
    pub memory: Memory,
    /// Next packet of each peer, and next message of each peer and context.
    numbers: BTreeMap<u32, u32>,
    seqs: BTreeMap<(u32, u32), u32>,
}

/// A whole packet with frames that are already encoded.
pub fn packet(kind: Kind, number: u32, body: &[u8]) -> Vec<u8> {
    let len = (Header::LEN + body.len()) as u32;
    [&Header { kind, len, number, ack: 0 }.encode()[..], body].concat()
}

pub fn encoded(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    frames.iter().for_each(|frame| frame.encode(&mut body));
    body
}

impl Lone {
    /// An engine with one rail, and links to `peers` that are open.
    pub fn new(peers: std::ops::Range<u32>, config: Config) -> Lone {
        let mut engine = Engine::new(config).expect("a strategy");
        let given = Given::default();
        let rail = KeepingRail(given.clone());
        assert_eq!(engine.setup().add_rail(rail.limits()), RAIL);
        for peer in peers {
            engine.setup().add_link(PeerId(peer), RAIL);
            engine.handle(NOW, RAIL, Event::Up { peer: PeerId(peer), remote: 0 });
        }
        let rails: Vec<Box<dyn Driver>> = vec![Box::new(rail)];
        let (memory, numbers, seqs) = (Memory::default(), BTreeMap::new(), BTreeMap::new());
        Lone { engine, rails, given, memory, numbers, seqs }
    }

    /// The interface of the rail loses its carrier, or has it again.
    pub fn carrier(&mut self, peer: u32, lost: Option<&str>) {
        let lost = lost.map(String::from);
        self.engine.handle(NOW, RAIL, Event::Carrier { peer: PeerId(peer), lost });
    }

    /// Bytes arrive as a packet.
    pub fn arrive_bytes(&mut self, from: u32, packet: &[u8]) {
        self.engine.handle(NOW, RAIL, Event::Arrived { from: PeerId(from), packet });
    }

    /// Frames arrive in a packet with the right number.
    pub fn arrive(&mut self, from: u32, frames: &[Frame<'_>]) {
        let number = self.numbers.entry(from).or_default();
        let bytes = packet(Kind::Packet, *number, &encoded(frames));
        *number += 1;
        self.arrive_bytes(from, &bytes);
    }

    /// The header of the next message of a flow.
    pub fn head(&mut self, from: u32, context: u32, tag: u64, len: usize) -> Eager {
        let seq = self.seqs.entry((from, context)).or_default();
        *seq += 1;
        Eager { flags: 0, context, tag, seq: *seq - 1, len: len as u32, request: 0 }
    }

    /// A small message arrives, alone in its packet.
    pub fn message(&mut self, from: u32, context: u32, tag: u64, data: &[u8]) {
        let head = self.head(from, context, tag, data.len());
        self.arrive(from, &[Frame::Eager(head, data)]);
    }

    /// Receives into a buffer that lives as long as this.
    pub fn recv(
        &mut self,
        from: Option<u32>,
        context: u32,
        tag: Option<u64>,
        len: usize,
    ) -> (RequestId, BufferId) {
        let (buffer, into) = self.memory.lend_blank(len, 0);
        (self.recv_into(from, context, tag, into), buffer)
    }

    pub fn recv_into(
        &mut self,
        from: Option<u32>,
        context: u32,
        tag: Option<u64>,
        into: Segments,
    ) -> RequestId {
        let source = from.map_or(Source::Any, |peer| Source::Peer(PeerId(peer)));
        let tag = tag.map_or(TagMatch::Any, |tag| TagMatch::Exact(Tag(tag)));
        self.engine.recv(source, Context(context), tag, into)
    }

    /// Lets the rail open and close what it is ordered to, and take packets.
    pub fn turn(&mut self) {
        pump::turn(&mut pump::Exclusive(&mut self.engine, &mut self.rails), NOW, &mut || NOW, true);
    }

    /// The packets that the engine sends; each is reported as sent.
    pub fn sent(&mut self) -> Vec<(PeerId, Vec<u8>)> {
        let mut list = Vec::new();
        self.turn();
        while let Some((to, number, packet)) = self.take_given() {
            let mut bytes = Vec::new();
            packet.parts(|part| bytes.extend_from_slice(part));
            list.push((to, bytes));
            self.engine.handle(NOW, RAIL, Event::Sent { to, number, packet: Some(packet) });
            self.turn();
        }
        list
    }

    fn take_given(&self) -> Option<(PeerId, u32, Packet)> {
        self.given.lock().unwrap().pop_front()
    }
}
