//! A layer that records everything between the engine and a rail.
//!
//! A ring of fixed size keeps the latest records; a handle that can be cloned reads them from any thread. A
//! record costs a reading of a counter and a copy of the headers of a packet. The content of packets is
//! explained only when the records are read.

use super::ring::{Entry, HEAD, More, Ring, Writer};
use super::ticks::Ticks;
use super::{Layer, addressee, size};
use nmad_engine::packet::Packet;
use nmad_engine::transfer::access::{Access, Act, Came};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope, Sent};
use nmad_wire::Eager;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The engine requested a link.
    Connect,
    /// The engine closed a link.
    Close,
    /// The engine posted a packet.
    PostPacket,
    /// The engine posted a chunk.
    PostChunk,
    /// The rail has sent a packet or chunk.
    Sent,
    /// The engine began an access to memory of the peer.
    Access,
    /// An access has ended.
    Accessed,
    /// A packet arrived.
    Arrived,
    /// A chunk landed.
    Landed,
    /// A link came up.
    Up,
    /// A link was lost.
    Lost,
    /// An interface lost or regained its carrier.
    Carrier,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds of the system's monotonic clock, which all rails and processes of a machine share.
    pub at_ns: u64,
    /// The kind of event.
    pub what: What,
    /// The peer.
    pub peer: u32,
    /// Number on the link, zero if there is none.
    pub number: u32,
    /// Length in bytes.
    pub len: u64,
    /// Content of a packet, or reason for the loss of a link; empty if not requested.
    pub text: String,
}

impl What {
    const ALL: [What; 12] = [
        What::Connect,
        What::Close,
        What::PostPacket,
        What::PostChunk,
        What::Sent,
        What::Access,
        What::Accessed,
        What::Arrived,
        What::Landed,
        What::Up,
        What::Lost,
        What::Carrier,
    ];

    fn is_of_link(self) -> bool {
        matches!(self, What::Connect | What::Close | What::Up | What::Lost | What::Carrier)
    }
}

/// The layer.
#[derive(Debug)]
pub struct Trace {
    handle: TraceHandle,
    writer: Writer,
    explain: bool,
}

/// A handle on the records of a trace.
#[derive(Debug, Clone)]
pub struct TraceHandle {
    rail: String,
    ticks: Ticks,
    ring: Arc<Ring>,
    forgotten: Arc<Mutex<Forgotten>>,
}

/// Marks the records that are hidden.
#[derive(Debug, Clone, Default)]
struct Forgotten {
    /// Records with lower numbers are hidden, except for these.
    below: u64,
    links: Vec<Record>,
}

/// Additional data of a record.
#[derive(Clone, Copy)]
enum About<'a> {
    Nothing,
    Reason(&'a str),
    /// The headers of a packet with a single message.
    Alone([u64; HEAD / 8]),
    /// Any other packet.
    Packet(&'a [u8]),
}

impl<'a> About<'a> {
    /// Classifies a packet of `len` bytes. `bytes` may lack the data of a single message.
    #[inline(always)]
    fn packet(bytes: &'a [u8], len: u64) -> About<'a> {
        match bytes.first_chunk() {
            Some(head) if alone(head, len).is_some() => About::Alone(words(head)),
            _ => About::Packet(bytes),
        }
    }
}

fn text(entry: &Entry, more: Option<&More>) -> String {
    match more {
        Some(More::Reason(text)) => text.clone(),
        Some(More::Packet(bytes)) => nmad_wire::explain(bytes).to_string(),
        None => {
            let alone = entry.head.and_then(|head| alone(&bytes(head), entry.len));
            let explain = |(header, eager)| nmad_wire::explain_alone(header, eager).to_string();
            alone.map_or_else(String::new, explain)
        }
    }
}

/// The headers of a packet of `len` bytes, if it contains a single message.
#[inline(always)]
fn alone(head: &[u8; HEAD], len: u64) -> Option<(nmad_wire::Header, Eager)> {
    Eager::alone_behind(head, len.checked_sub(HEAD as u64)? as usize)
}

/// Converts headers to words, and back.
#[inline(always)]
fn words(head: &[u8; HEAD]) -> [u64; HEAD / 8] {
    let mut words = [0; HEAD / 8];
    for (word, bytes) in words.iter_mut().zip(head.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words
}

fn bytes(words: [u64; HEAD / 8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head.as_chunks_mut::<8>().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_ne_bytes());
    head
}

impl Trace {
    fn note_accessed(&mut self, to: u32, came: Came) {
        let text = if came == Came::Done { "" } else { "not done" };
        self.note(What::Accessed, to, 0, 0, About::Reason(text));
    }

    /// Creates a trace of the latest `most` records; `explain`: records include the content of each packet.
    pub fn new(rail: &str, most: usize, explain: bool) -> Self {
        let (rail, ticks) = (rail.into(), Ticks::start());
        let (ring, forgotten) = (Arc::new(Ring::new(most)), Arc::default());
        Trace { handle: TraceHandle { rail, ticks, ring, forgotten }, writer: Writer::default(), explain }
    }

    /// Returns a handle on the records.
    pub fn handle(&self) -> TraceHandle {
        self.handle.clone()
    }

    #[inline(always)]
    fn note(&mut self, what: What, peer: u32, number: u32, len: u64, about: About<'_>) {
        self.note_at(self.handle.ticks.now(), (what, peer, number, len), about);
    }

    #[inline(always)]
    fn note_at(&mut self, ticks: u64, (what, peer, number, len): (What, u32, u32, u64), about: About<'_>) {
        let entry = Entry { ticks, len, peer, number, what: what as u8, head: None };
        let (ring, writer) = (&self.handle.ring, &mut self.writer);
        match about {
            About::Alone(head) if self.explain => ring.write(writer, &Entry { head: Some(head), ..entry }),
            About::Packet(bytes) if self.explain => {
                ring.write_more(writer, &entry, More::Packet(bytes.into()))
            }
            About::Reason(text) if self.explain => ring.write_more(writer, &entry, More::Reason(text.into())),
            _ => ring.write(writer, &entry),
        }
    }

    /// Only packets without segments in user memory are explained, because the data is missing in others.
    fn whole(packet: &Packet) -> About<'_> {
        match packet.in_place.is_empty() {
            true => About::packet(&packet.bytes, packet.len() as u64),
            false => About::Nothing,
        }
    }

    /// Records an arrived packet.
    #[inline(always)]
    fn note_arrival(&mut self, from: u32, packet: &[u8]) {
        let len = packet.len() as u64;
        let alone = packet.first_chunk().and_then(|head| Some((alone(head, len)?.0.number, words(head))));
        match alone {
            Some((number, head)) => self.note(What::Arrived, from, number, len, About::Alone(head)),
            None => {
                let number = nmad_wire::Header::decode(packet).map_or(0, |header| header.number);
                self.note(What::Arrived, from, number, len, About::Packet(packet));
            }
        }
    }

    #[inline(always)]
    fn note_event(&mut self, event: &Event<'_>) {
        let none = About::Nothing;
        match event {
            Event::Up { peer, remote } => self.note(What::Up, peer.0, u32::from(*remote), 0, none),
            Event::Arrived { from, packet } => self.note_arrival(from.0, packet),
            Event::Landed { from, number, len, .. } => self.note(What::Landed, from.0, *number, *len, none),
            Event::Sent { to, number, packet } => {
                let len = packet.as_ref().map_or(0, |packet| packet.len() as u64);
                self.note(What::Sent, to.0, *number, len, none);
            }
            Event::Accessed { to, came, .. } => self.note_accessed(to.0, *came),
            Event::Carrier { peer, lost } => {
                let text = lost.as_deref().unwrap_or("carries again");
                self.note(What::Carrier, peer.0, 0, 0, About::Reason(text));
            }
            Event::Pushed { .. } | Event::Moved { .. } | Event::Buffers { .. } => {}
            Event::Lost { peer, why, .. } => self.note(What::Lost, peer.0, 0, 0, About::Reason(why)),
        }
    }
}

impl Trace {
    /// Records and sends a message.
    #[inline(always)]
    fn message(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        let Departure::Message { to, number, head, data, .. } = &departure else {
            return rail.send(departure);
        };
        let len = size_of_val(*head) as u64 + data.len();
        let about = (*head).try_into().map_or(About::Nothing, About::Alone);
        // The time is taken before sending, because the receiver may have the message before the call
        // returns.
        let (record, ticks) = ((What::PostPacket, to.0, *number, len), self.handle.ticks.now());
        let sent = rail.send(departure);
        if sent != Sent::Retry {
            self.note_at(ticks, record, about);
        }
        sent
    }

    fn order(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        let ((peer, number), (len, _)) = (addressee(&departure), size(&departure));
        if let Departure::Order(order) = &departure {
            let entry = match order {
                Order::Connect { .. } => Some((What::Connect, About::Nothing)),
                Order::Close { .. } => Some((What::Close, About::Nothing)),
                Order::Packet { packet, .. } => Some((What::PostPacket, Trace::whole(packet))),
                Order::Chunk { .. } => Some((What::PostChunk, About::Nothing)),
                Order::Accept { .. } => None,
            };
            entry.into_iter().for_each(|(what, about)| self.note(what, peer.0, number, len, about));
        }
        rail.send(departure)
    }

    fn pushed(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        let ((peer, number), (len, _)) = (addressee(&departure), size(&departure));
        let Departure::Pushed { packet, .. } = departure else { return rail.send(departure) };
        let ticks = self.handle.ticks.now();
        let sent = rail.send(departure);
        if sent != Sent::Retry {
            let (head, first) = (packet.len() as u64, number.wrapping_sub(1));
            let about = About::packet(packet, head);
            self.note_at(ticks, (What::PostPacket, peer.0, first, head), about);
            self.note_at(ticks, (What::PostChunk, peer.0, number, len - head), About::Nothing);
        }
        sent
    }
}

impl Layer for Trace {
    fn send(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { .. } => self.message(rail, departure),
            Departure::Order(_) => self.order(rail, departure),
            Departure::Pushed { .. } => self.pushed(rail, departure),
        }
    }

    fn access(&mut self, rail: &mut impl Driver, access: Access) -> Option<Came> {
        let what = match access.act {
            Act::Put => "put",
            Act::Get => "get",
            Act::Add(_) | Act::Swap(..) => "atomic",
        };
        self.note(What::Access, access.to.0, 0, access.here.len(), About::Reason(what));
        let to = access.to.0;
        let came = rail.access(access);
        came.into_iter().for_each(|came| self.note_accessed(to, came));
        came
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
        let Forgotten { below, mut links } = self.forgotten().clone();
        let record = |(number, entry, more): (u64, Entry, Option<More>)| {
            let text = text(&entry, more.as_ref());
            let Entry { ticks, len, peer, number: on_link, what, .. } = entry;
            let what = *What::ALL.get(usize::from(what)).filter(|_| number >= below)?;
            Some(Record { at_ns: scale(ticks), what, peer, number: on_link, len, text })
        };
        links.extend(self.ring.read().into_iter().filter_map(record));
        links.drain(..links.len().saturating_sub(self.ring.most()));
        links
    }

    /// The name of the rail.
    pub fn rail(&self) -> &str {
        &self.rail
    }

    /// Hides the packets and chunks recorded before; records of links stay visible.
    pub fn forget_traffic(&self) {
        let below = self.ring.count();
        let mut links = self.records();
        links.retain(|record| record.what.is_of_link());
        *self.forgotten() = Forgotten { below, links };
    }

    fn forgotten(&self) -> MutexGuard<'_, Forgotten> {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Formats the records as one JSON object per line.
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
}

/// Quotes a string for JSON.
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
