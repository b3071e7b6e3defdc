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
    /// All of them are there from the beginning: memory that is touched for the first time costs more than a
    /// record.
    records: Vec<Noted>,
    next: usize,
    /// The oldest record is overwritten.
    is_full: bool,
}

/// A record as it is kept: written in place, with a head of fixed length. Between two messages of 8 B
/// there is no time for more.
#[derive(Debug)]
struct Noted {
    ticks: u64,
    len: u64,
    peer: u32,
    number: u32,
    /// What goes before the data of a message that was alone in its packet, if it was one.
    head: [u8; HEAD],
    has_head: bool,
    what: What,
    more: Option<Box<More>>,
}

/// What a record says besides.
#[derive(Debug)]
enum More {
    /// Why a link was lost.
    Reason(String),
    /// A packet that carries more than one message.
    Packet(Vec<u8>),
}

/// Bytes of a packet that a record holds: all but the data of a message that is alone in it.
const HEAD: usize = Eager::ALONE_LEN;

/// What a record is about.
#[derive(Clone, Copy)]
enum About<'a> {
    Nothing,
    Reason(&'a str),
    /// A packet, of which the data of a message that is alone in it need not be there.
    Packet(&'a [u8]),
}

impl Noted {
    fn nothing() -> Noted {
        let (ticks, len, peer, number, head, has_head) = (0, 0, 0, 0, [0; HEAD], false);
        Noted { ticks, len, peer, number, head, has_head, what: What::Connect, more: None }
    }

    #[inline(always)]
    fn set_about(&mut self, about: About<'_>) {
        self.has_head = false;
        if self.more.is_some() {
            self.more = None;
        }
        match about {
            About::Nothing => {}
            About::Packet(bytes) => match bytes.first_chunk() {
                Some(head) if alone(head, self.len).is_some() => (self.head, self.has_head) = (*head, true),
                _ => self.more = Some(Box::new(More::Packet(bytes.into()))),
            },
            About::Reason(text) => self.more = Some(Box::new(More::Reason(text.into()))),
        }
    }

    fn text(&self) -> String {
        match self.more.as_deref() {
            Some(More::Reason(text)) => text.clone(),
            Some(More::Packet(bytes)) => nmad_wire::explain(bytes).to_string(),
            None => alone(&self.head, self.len)
                .filter(|_| self.has_head)
                .map_or_else(String::new, |(header, eager)| {
                    nmad_wire::explain_alone(header, eager).to_string()
                }),
        }
    }
}

/// The head of a packet of `len` bytes, if it carries one message and nothing else.
#[inline(always)]
fn alone(head: &[u8; HEAD], len: u64) -> Option<(nmad_wire::Header, Eager)> {
    Eager::alone_behind(head, len.checked_sub(HEAD as u64)? as usize)
}

impl Trace {
    /// Keeps the latest `most` records; `explain`: they say what is in each packet.
    pub fn new(rail: &str, most: usize, explain: bool) -> Self {
        let mut records = Vec::new();
        records.resize_with(most, Noted::nothing);
        let ring = Ring { records, next: 0, is_full: false };
        let handle = TraceHandle { rail: rail.into(), ticks: Ticks::start(), ring: Arc::new(Mutex::new(ring)) };
        Trace { handle, explain }
    }

    /// A handle on the records.
    pub fn handle(&self) -> TraceHandle {
        self.handle.clone()
    }

    #[inline(always)]
    fn note(&self, what: What, peer: u32, number: u32, len: u64, about: About<'_>) {
        self.note_at(self.handle.ticks.now(), (what, peer, number, len), about);
    }

    #[inline(always)]
    fn note_at(&self, ticks: u64, (what, peer, number, len): (What, u32, u32, u64), about: About<'_>) {
        let mut ring = self.handle.lock();
        let Some(noted) = ring.next() else { return };
        (noted.ticks, noted.len, noted.peer, noted.number, noted.what) = (ticks, len, peer, number, what);
        noted.set_about(if self.explain { about } else { About::Nothing });
    }

    /// Data in place is missing, so only whole packets are explained.
    fn whole(packet: &Packet) -> About<'_> {
        if packet.in_place.is_empty() { About::Packet(&packet.bytes) } else { About::Nothing }
    }

    fn note_event(&self, event: &Event<'_>) {
        let none = About::Nothing;
        match event {
            Event::Up { peer, remote } => self.note(What::Up, peer.0, u32::from(*remote), 0, none),
            Event::Arrived { from, packet } => {
                let number = nmad_wire::Header::decode(packet).map_or(0, |header| header.number);
                let len = packet.len() as u64;
                self.note(What::Arrived, from.0, number, len, About::Packet(packet));
            }
            Event::Landed { from, number, len, .. } => self.note(What::Landed, from.0, *number, *len, none),
            Event::Remote { from, message } => {
                let number = nmad_wire::Header::decode(message.head).map_or(0, |header| header.number);
                let len = message.head.len() as u64 + message.len;
                self.note(What::Arrived, from.0, number, len, About::Packet(message.head));
            }
            Event::Sent { to, number, packet } => {
                let len = packet.as_ref().map_or(0, |packet| packet.len() as u64);
                self.note(What::Sent, to.0, *number, len, none);
            }
            Event::Declined { to, number } => self.note(What::Declined, to.0, *number, 0, none),
            Event::Carrier { peer, lost } => {
                let text = lost.as_deref().unwrap_or("carries again");
                self.note(What::Carrier, peer.0, 0, 0, About::Reason(text));
            }
            Event::Pushed { .. } | Event::Moved { .. } | Event::Buffers { .. } => {}
            Event::Lost { peer, why, .. } => self.note(What::Lost, peer.0, 0, 0, About::Reason(why)),
        }
    }
}

impl Ring {
    /// The place of the next record; none: no records are kept.
    #[inline(always)]
    fn next(&mut self) -> Option<&mut Noted> {
        let place = self.next;
        self.next = place + 1;
        if self.next >= self.records.len() {
            (self.next, self.is_full) = (0, true);
        }
        self.records.get_mut(place)
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
                    Order::Packet { packet, .. } => (What::PostPacket, Trace::whole(packet)),
                    Order::Chunk { .. } => (What::PostChunk, About::Nothing),
                    Order::Accept { .. } => return rail.send(Departure::Order(order)),
                };
                self.note(what, peer.0, number, len, about);
                rail.send(Departure::Order(order))
            }
            // The time is that before sending: the receiver may have it before the call returns.
            Departure::Message { head, .. } => {
                let ticks = self.handle.ticks.now();
                let sent = rail.send(departure);
                if sent != Sent::Retry {
                    let mut bytes = [0; HEAD];
                    for (place, word) in bytes.chunks_exact_mut(8).zip(head) {
                        place.copy_from_slice(&word.to_ne_bytes());
                    }
                    self.note_at(ticks, (What::PostPacket, peer.0, number, len), About::Packet(&bytes));
                }
                sent
            }
            Departure::Pushed { packet, .. } => {
                let ticks = self.handle.ticks.now();
                let sent = rail.send(departure);
                if sent != Sent::Retry {
                    let (head, first) = (packet.len() as u64, number.wrapping_sub(1));
                    self.note_at(ticks, (What::PostPacket, peer.0, first, head), About::Packet(packet));
                    self.note_at(ticks, (What::PostChunk, peer.0, number, len - head), About::Nothing);
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
            let &Noted { ticks, len, peer, number, what, .. } = noted;
            Record { at_ns: scale(ticks), what, peer, number, len, text: noted.text() }
        };
        let ring = self.lock();
        let (newer, older) = ring.records.split_at(ring.next);
        older.iter().filter(|_| ring.is_full).chain(newer).map(record).collect()
    }

    /// The name of the rail.
    pub fn rail(&self) -> &str {
        &self.rail
    }

    /// Drops the packets and chunks of before; what is known of links stays.
    pub fn forget_traffic(&self) {
        let mut ring = self.lock();
        let most = ring.records.len();
        let (next, is_full) = (ring.next, ring.is_full);
        let mut kept: Vec<Noted> = std::mem::take(&mut ring.records);
        match is_full {
            true => kept.rotate_left(next),
            false => kept.truncate(next),
        }
        let is_of_link =
            |what| matches!(what, What::Connect | What::Close | What::Up | What::Lost | What::Carrier);
        kept.retain(|noted| is_of_link(noted.what));
        let next = kept.len();
        kept.resize_with(most, Noted::nothing);
        *ring = Ring { next: if next == most { 0 } else { next }, is_full: next == most, records: kept };
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
pub fn quote(text: &str) -> String {
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
