//! What passes between the engine and a rail, written down.
//!
//! A ring of bounded size keeps the latest records; a handle that can be cloned reads them from anywhere.
//! Writing one down costs a clock reading and an uncontended lock, and no allocation unless packets are
//! explained.

use super::{Layer, addressee, size};
use nmad_engine::memory::Segments;
use nmad_engine::packet::Packet;
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope, Sent};
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
    /// The receiver did not copy what was offered to it.
    Declined,
    /// A packet arrived.
    Arrived,
    /// A chunk landed.
    Landed,
    /// A link came up.
    Up,
    /// A link was lost.
    Lost,
    /// An interface carries nothing any more, or carries again.
    Carrier,
}

/// One thing that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds on the system's monotonic clock, which all rails and processes of a machine share.
    pub at_ns: u64,
    /// The kind of event.
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

    /// Data in place is missing in the explanation's input, so only whole packets are read.
    fn explain_parts(&self, packet: &Packet) -> String {
        if packet.in_place.is_empty() { self.explain(&packet.bytes) } else { String::new() }
    }

    fn explain_message(&self, head: &[u64], data: &Segments) -> String {
        let mut packet = Vec::new();
        if self.explain {
            data.append_behind(head, &mut packet);
        }
        self.explain(&packet)
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
            Event::Remote { from, message } => {
                let number = nmad_wire::Header::decode(message.head).map_or(0, |header| header.number);
                let len = message.head.len() as u64 + message.len;
                self.note(What::Arrived, from.0, number, len, none);
            }
            Event::Sent { to, number, packet } => {
                let len = packet.as_ref().map_or(0, |packet| packet.len() as u64);
                self.note(What::Sent, to.0, *number, len, none);
            }
            Event::Declined { to, number } => self.note(What::Declined, to.0, *number, 0, none),
            Event::Carrier { peer, lost } => {
                self.note(
                    What::Carrier,
                    peer.0,
                    0,
                    0,
                    lost.clone().unwrap_or_else(|| "carries again".into()),
                );
            }
            Event::Pushed { .. } | Event::Moved { .. } | Event::Buffers { .. } => {}
            Event::Lost { peer, why, .. } => self.note(What::Lost, peer.0, 0, 0, why.clone()),
        }
    }
}

impl Layer for Trace {
    fn send(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        let ((peer, number), (len, _)) = (addressee(&departure), size(&departure));
        match departure {
            Departure::Order(order) => {
                let (what, text) = match &order {
                    Order::Connect { .. } => (What::Connect, String::new()),
                    Order::Close { .. } => (What::Close, String::new()),
                    Order::Packet { packet, .. } => (What::PostPacket, self.explain_parts(packet)),
                    Order::Chunk { .. } => (What::PostChunk, String::new()),
                    Order::Accept { .. } => return rail.send(Departure::Order(order)),
                };
                self.note(what, peer.0, number, len, text);
                rail.send(Departure::Order(order))
            }
            Departure::Message { head, data, .. } => {
                let sent = rail.send(departure);
                if sent != Sent::Retry {
                    self.note(What::PostPacket, peer.0, number, len, self.explain_message(head, data));
                }
                sent
            }
            Departure::Pushed { packet, .. } => {
                let sent = rail.send(departure);
                if sent != Sent::Retry {
                    let (head, first) = (packet.len() as u64, number.wrapping_sub(1));
                    self.note(What::PostPacket, peer.0, first, head, self.explain(packet));
                    self.note(What::PostChunk, peer.0, number, len - head, String::new());
                }
                sent
            }
        }
    }

    fn poll(&mut self, rail: &mut impl Driver, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        rail.poll(scope, &mut |event| {
            self.note_event(&event);
            report(event);
        })
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
