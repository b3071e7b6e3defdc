//! What passes between the engine and a rail, written down.
//!
//! A ring of bounded size keeps the latest records; a handle that can be cloned reads them from anywhere.
//! Writing one down costs a look at a counter, an uncontended lock and a copy of the head of a packet. What a
//! packet carries is explained when the records are read.

use super::ticks::Ticks;
use super::{Layer, addressee, size};
use nmad_engine::packet::Packet;
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope, Sent};
use nmad_wire::Eager;
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
    ticks: Ticks,
    ring: Arc<Mutex<Ring>>,
}

#[derive(Debug)]
struct Ring {
    records: VecDeque<Noted>,
    most: usize,
}

/// A record as it is kept.
#[derive(Debug)]
struct Noted {
    ticks: u64,
    len: u64,
    peer: u32,
    number: u32,
    what: What,
    about: About,
}

/// Of which the text of a record is made.
#[derive(Debug)]
enum About {
    Nothing,
    /// Why a link was lost.
    Reason(Box<str>),
    /// A short packet, or the head of one that carries one message.
    Short([u8; SHORT], u8),
    /// Another packet.
    Packet(Box<[u8]>),
}

/// Bytes of a packet that a record holds.
const SHORT: usize = 64;

impl About {
    fn reason(text: &str) -> About {
        if text.is_empty() { About::Nothing } else { About::Reason(text.into()) }
    }

    /// A packet, of which the data of a message that is alone in it need not be there.
    #[inline]
    fn packet(bytes: &[u8], len: u64) -> About {
        let head = bytes.first_chunk::<{ Eager::ALONE_LEN }>();
        let is_short = bytes.len() <= SHORT;
        let is_alone = || head.is_some_and(|head| alone(head, len).is_some());
        if !is_short && !is_alone() {
            return About::Packet(bytes.into());
        }
        let kept = if is_short { bytes.len() } else { Eager::ALONE_LEN };
        let mut short = [0; SHORT];
        short[..kept].copy_from_slice(&bytes[..kept]);
        About::Short(short, kept as u8)
    }

    fn text(&self, len: u64) -> String {
        let bytes = match self {
            About::Nothing => return String::new(),
            About::Reason(text) => return text.to_string(),
            About::Short(bytes, kept) => &bytes[..usize::from(*kept)],
            About::Packet(bytes) => bytes,
        };
        let head = bytes.first_chunk().filter(|_| (bytes.len() as u64) < len);
        match head.and_then(|head| alone(head, len)) {
            Some((header, eager)) => nmad_wire::explain_alone(header, eager).to_string(),
            None => nmad_wire::explain(bytes).to_string(),
        }
    }
}

/// The head of a packet of so many bytes, if it carries one message and nothing else.
fn alone(head: &[u8; Eager::ALONE_LEN], len: u64) -> Option<(nmad_wire::Header, Eager)> {
    Eager::alone_behind(head, len.checked_sub(Eager::ALONE_LEN as u64)? as usize)
}

impl Trace {
    /// Keeps the latest `most` records; `explain`: they say what is in each packet.
    pub fn new(rail: &str, most: usize, explain: bool) -> Self {
        let ring = Ring { records: VecDeque::with_capacity(most), most };
        let handle = TraceHandle { rail: rail.into(), ticks: Ticks::new(), ring: Arc::new(Mutex::new(ring)) };
        Trace { handle, explain }
    }

    /// A handle on the records.
    pub fn handle(&self) -> TraceHandle {
        self.handle.clone()
    }

    #[inline]
    fn note(&self, what: What, peer: u32, number: u32, len: u64, about: About) {
        let ticks = self.handle.ticks.now();
        let mut ring = self.handle.lock();
        if ring.records.len() == ring.most {
            ring.records.pop_front();
        }
        if ring.most > 0 {
            ring.records.push_back(Noted { ticks, len, peer, number, what, about });
        }
    }

    #[inline]
    fn packet(&self, bytes: &[u8], len: u64) -> About {
        if self.explain { About::packet(bytes, len) } else { About::Nothing }
    }

    /// Data in place is missing, so only whole packets are explained.
    fn whole(&self, packet: &Packet) -> About {
        let is_whole = packet.in_place.is_empty();
        if is_whole { self.packet(&packet.bytes, packet.bytes.len() as u64) } else { About::Nothing }
    }

    /// A message that leaves alone: of its head the data follows from nothing.
    #[inline]
    fn message(&self, head: &[u64], len: u64) -> About {
        let mut bytes = [0; Eager::ALONE_LEN];
        for (place, word) in bytes.chunks_exact_mut(8).zip(head) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        self.packet(&bytes, len)
    }

    fn note_event(&self, event: &Event<'_>) {
        let none = About::Nothing;
        match event {
            Event::Up { peer, remote } => self.note(What::Up, peer.0, u32::from(*remote), 0, none),
            Event::Arrived { from, packet } => {
                let number = nmad_wire::Header::decode(packet).map_or(0, |header| header.number);
                let len = packet.len() as u64;
                self.note(What::Arrived, from.0, number, len, self.packet(packet, len));
            }
            Event::Landed { from, number, len, .. } => self.note(What::Landed, from.0, *number, *len, none),
            Event::Remote { from, message } => {
                let number = nmad_wire::Header::decode(message.head).map_or(0, |header| header.number);
                let len = message.head.len() as u64 + message.len;
                self.note(What::Arrived, from.0, number, len, self.packet(message.head, len));
            }
            Event::Sent { to, number, packet } => {
                let len = packet.as_ref().map_or(0, |packet| packet.len() as u64);
                self.note(What::Sent, to.0, *number, len, none);
            }
            Event::Declined { to, number } => self.note(What::Declined, to.0, *number, 0, none),
            Event::Carrier { peer, lost } => {
                let text = lost.as_deref().unwrap_or("carries again");
                self.note(What::Carrier, peer.0, 0, 0, About::reason(text));
            }
            Event::Pushed { .. } | Event::Moved { .. } | Event::Buffers { .. } => {}
            Event::Lost { peer, why, .. } => self.note(What::Lost, peer.0, 0, 0, About::reason(why)),
        }
    }
}

impl Layer for Trace {
    fn send(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        let ((peer, number), (len, _)) = (addressee(&departure), size(&departure));
        match departure {
            Departure::Order(order) => {
                let (what, about) = match &order {
                    Order::Connect { .. } => (What::Connect, About::Nothing),
                    Order::Close { .. } => (What::Close, About::Nothing),
                    Order::Packet { packet, .. } => (What::PostPacket, self.whole(packet)),
                    Order::Chunk { .. } => (What::PostChunk, About::Nothing),
                    Order::Accept { .. } => return rail.send(Departure::Order(order)),
                };
                self.note(what, peer.0, number, len, about);
                rail.send(Departure::Order(order))
            }
            Departure::Message { head, .. } => {
                let sent = rail.send(departure);
                if sent != Sent::Retry {
                    self.note(What::PostPacket, peer.0, number, len, self.message(head, len));
                }
                sent
            }
            Departure::Pushed { packet, .. } => {
                let sent = rail.send(departure);
                if sent != Sent::Retry {
                    let (head, first) = (packet.len() as u64, number.wrapping_sub(1));
                    self.note(What::PostPacket, peer.0, first, head, self.packet(packet, head));
                    self.note(What::PostChunk, peer.0, number, len - head, About::Nothing);
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
        let scale = self.ticks.scale();
        let record = |noted: &Noted| {
            let &Noted { ticks, len, peer, number, what, ref about } = noted;
            Record { at_ns: scale(ticks), what, peer, number, len, text: about.text(len) }
        };
        self.lock().records.iter().map(record).collect()
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
