//! A single engine; the test plays its peers and writes the packets that arrive.

use crate::net::memory::{BufferId, Memory};
use nmad_engine::{
    Config, Context, Engine, Event, Instant, Limits, PeerId, RailId, RequestId, Segments, Source, Tag,
    TagMatch,
};
use nmad_wire::{Eager, Frame, Header, Kind};
use std::collections::BTreeMap;

pub const RAIL: RailId = RailId(0);
const NOW: Instant = Instant::from_ns(1);

pub struct Lone {
    pub engine: Engine,
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
        let limits = Limits { packet: 16 << 10, chunk: 1 << 20, gather: 8, depth: 64, ..Limits::default() };
        assert_eq!(engine.add_rail(limits), RAIL);
        for peer in peers {
            engine.add_link(PeerId(peer), RAIL);
            engine.handle(NOW, RAIL, Event::Up { peer: PeerId(peer), remote: 0 });
        }
        Lone { engine, memory: Memory::default(), numbers: BTreeMap::new(), seqs: BTreeMap::new() }
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

    /// Lets the rail open and close what it is ordered to.
    pub fn run_errands(&mut self) {
        while self.engine.next_opening(RAIL).is_some() {}
        while self.engine.next_errand(RAIL).is_some() {}
    }

    /// The packets that the engine would send, one after the other; each is reported as sent at once.
    pub fn sent(&mut self) -> Vec<(PeerId, Vec<u8>)> {
        let mut list = Vec::new();
        while let Some(order) = self.engine.next_order(NOW, RAIL, true) {
            if let nmad_engine::Order::Packet { to, number, packet } = order {
                let mut bytes = Vec::new();
                packet.parts(|part| bytes.extend_from_slice(part));
                list.push((to, bytes));
                self.engine.handle(NOW, RAIL, Event::Sent { to, number, packet: Some(packet) });
            }
        }
        list
    }
}
