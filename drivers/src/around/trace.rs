//! What passes between the engine and a rail, written down.
//!
//! A ring of bounded size keeps the latest records; a handle that can be cloned reads them from anywhere.
//! Writing one down costs a clock reading and an uncontended lock, and no allocation unless packets are
//! explained.

use super::{Layer, addressee, len};
use nmad_engine::transfer::driver::{Driver, Event, Order};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The engine asked for a link.
    Connect,
    /// The engine gave a link up.
    Close,
    /// The engine posted a packet.
    PostPacket,
    /// The engine posted a chunk.
    PostChunk,
    /// The rail has sent a packet or chunk.
    Sent,
    /// A packet arrived.
    Arrived,
    /// A chunk landed.
    Landed,
    /// A link came up.
    Up,
    /// A link was lost.
    Lost,
}

/// One thing that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds on the system's monotonic clock, which all rails and processes of a machine share.
    pub at_ns: u64,
    /// What it was.
    pub what: What,
    /// The peer.
    pub peer: u32,
    /// Number on the link, zero where there is none.
    pub number: u32,
    /// Bytes.
    pub len: u64,
    /// What a packet carries, or why a link was lost; empty if not asked for.
    pub text: String,
}

/// Writes down what passes.
#[derive(Debug)]
pub struct Trace {
    handle: TraceHandle,
    explain: bool,
}

/// The records of a trace.
#[derive(Debug, Clone)]
pub struct TraceHandle {
    rail: String,
    ring: Arc<Mutex<Ring>>,
}

#[derive(Debug)]
struct Ring {
    records: VecDeque<Record>,
    most: usize,
}

impl Trace {
    /// Keeps the latest `most` records; `explain`: says what is in each packet, which costs microseconds.
    pub fn new(rail: &str, most: usize, explain: bool) -> Self {
        let ring = Ring { records: VecDeque::with_capacity(most), most };
        let handle = TraceHandle { rail: rail.into(), ring: Arc::new(Mutex::new(ring)) };
        Trace { handle, explain }
    }

    /// A handle on the records.
    pub fn handle(&self) -> TraceHandle {
        self.handle.clone()
    }

    fn note(&self, what: What, peer: u32, number: u32, len: u64, text: String) {
        let now = clock_gettime(ClockId::Monotonic);
        let at_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let mut ring = self.handle.lock();
        if ring.records.len() == ring.most {
            ring.records.pop_front();
        }
        if ring.most > 0 {
            ring.records.push_back(Record { at_ns, what, peer, number, len, text });
        }
    }

    fn explain(&self, packet: &[u8]) -> String {
        if self.explain { nmad_wire::explain(packet).to_string() } else { String::new() }
    }

    fn note_event(&self, event: &Event<'_>) {
        let none = String::new();
        match event {
            Event::Up { peer, remote } => self.note(What::Up, peer.0, u32::from(*remote), 0, none),
            Event::Arrived { from, packet } => {
                let number = nmad_wire::Header::decode(packet).map_or(0, |header| header.number);
                self.note(What::Arrived, from.0, number, packet.len() as u64, self.explain(packet));
            }
            Event::Landed { from, number, len, .. } => self.note(What::Landed, from.0, *number, *len, none),
            Event::Sent { to, number, packet } => {
                let len = packet.as_ref().map_or(0, |packet| packet.len() as u64);
                self.note(What::Sent, to.0, *number, len, none);
            }
            Event::Pushed { .. } | Event::Moved { .. } | Event::Buffers { .. } => {}
            Event::Lost { peer, why, .. } => self.note(What::Lost, peer.0, 0, 0, why.clone()),
        }
    }
}

impl Layer for Trace {
    fn post(&mut self, rail: &mut impl Driver, order: Order) {
        let (what, number, text) = match &order {
            Order::Connect { .. } => (What::Connect, 0, String::new()),
            Order::Close { .. } => (What::Close, 0, String::new()),
            Order::Packet { number, packet, .. } => {
                // Data in place is missing in the explanation's input, so only whole packets are read.
                let text =
                    if packet.in_place.is_empty() { self.explain(&packet.bytes) } else { String::new() };
                (What::PostPacket, *number, text)
            }
            Order::Chunk { number, .. } => (What::PostChunk, *number, String::new()),
        };
        self.note(what, addressee(&order).0, number, len(&order), text);
        rail.post(order);
    }

    fn poll(&mut self, rail: &mut impl Driver, report: &mut dyn FnMut(Event<'_>)) {
        rail.poll(&mut |event| {
            self.note_event(&event);
            report(event);
        });
    }
}

impl TraceHandle {
    /// A copy of the records, the oldest first.
    pub fn records(&self) -> Vec<Record> {
        self.lock().records.iter().cloned().collect()
    }

    /// One JSON object per line.
    pub fn json_lines(&self) -> String {
        let mut out = String::new();
        for r in self.records() {
            let (rail, what, text) = (quote(&self.rail), r.what, quote(&r.text));
            let _ = writeln!(
                out,
                "{{\"at_ns\":{},\"rail\":{rail},\"what\":\"{what:?}\",\"peer\":{},\"number\":{},\
                 \"len\":{},\"text\":{text}}}",
                r.at_ns, r.peer, r.number, r.len
            );
        }
        out
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A JSON string.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
