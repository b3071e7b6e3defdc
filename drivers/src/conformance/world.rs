//! Two rails and their reported events.

use super::Pair;
use super::memory::{Memory, write_pattern};
use nmad_engine::packet::{Key, Packet, PeerId, RegionId, RequestId};
use nmad_engine::transfer::access::Came;
use nmad_engine::transfer::driver::{Departure, Driver, Event, Limits, Order, Scope};
use nmad_wire::{Header, Kind};
use std::time::{Duration, Instant};

/// Longest wait for an event.
const BOUND: Duration = Duration::from_secs(10);

/// Polls in a row without an event after which the thread sleeps between polls: pairs that run at the same
/// time and make progress get the core.
const EMPTY_POLLS: u32 = 1000;
/// How long it then sleeps, which is short against every time limit of a driver.
const PAUSE: Duration = Duration::from_micros(50);

/// An event that a rail reported, with its data.
#[derive(Debug)]
pub enum Seen {
    /// See [`Event::Up`].
    Up(PeerId, u8),
    /// See [`Event::Arrived`].
    Arrived(PeerId, Vec<u8>),
    /// See [`Event::Pushed`]: request, length.
    Pushed(u64, u64),
    /// See [`Event::Landed`]: number, receive region, offset, length, kept.
    Landed(u32, RegionId, u64, u64, bool),
    /// See [`Event::Sent`]: number, and whether the packet was given back.
    Sent(u32, bool),
    /// See [`Event::Accessed`].
    Accessed(RequestId, Came),
    /// See [`Event::Lost`]: reason, and the numbers of orders that were not sent.
    Lost(String, Vec<u32>),
}

/// Two sides, or one that is its own peer.
pub struct World {
    sides: Vec<Side>,
    tick: Box<dyn FnMut()>,
    /// Memory that rails may still use; dropped last.
    pub kept: Vec<Memory>,
}

struct Side {
    rail: Option<Box<dyn Driver>>,
    number: u8,
    record: Record,
}

/// The events of a side. Those that are waited for are counted, since they are compared after each poll.
#[derive(Default)]
struct Record {
    seen: Vec<Seen>,
    up: usize,
    arrived: usize,
    landed: usize,
    sent: usize,
    lost: usize,
    /// All events so far, also those that are not kept.
    events: u64,
}

impl Record {
    fn note(&mut self, event: Event<'_>) {
        self.events += 1;
        if let Some(seen) = note(event) {
            self.add(seen);
        }
    }

    fn add(&mut self, seen: Seen) {
        match seen {
            Seen::Up(..) => self.up += 1,
            Seen::Arrived(..) => self.arrived += 1,
            Seen::Landed(..) => self.landed += 1,
            Seen::Sent(..) => self.sent += 1,
            Seen::Lost(..) => self.lost += 1,
            Seen::Pushed(..) | Seen::Accessed(..) => {}
        }
        self.seen.push(seen);
    }
}

/// The sending side.
pub const A: usize = 0;
/// The receiving side, which may be the same.
pub const B: usize = 1;

impl World {
    pub(super) fn new(pair: Pair) -> Self {
        let side = |rail, number| Side { rail: Some(rail), number, record: Record::default() };
        let mut sides = vec![side(pair.first, pair.rails[0])];
        sides.extend(pair.second.map(|rail| side(rail, pair.rails[1])));
        World { sides, tick: pair.tick, kept: Vec::new() }
    }

    /// Returns whether there is one side only.
    pub fn is_alone(&self) -> bool {
        self.sides.len() == 1
    }

    /// Returns whether the rails lose packets.
    pub fn is_lossy(&self) -> bool {
        self.limits().lossy
    }

    /// The limits of the rails.
    pub fn limits(&self) -> Limits {
        self.sides[0].rail.as_ref().map(|rail| rail.limits()).expect("the first rail is there")
    }

    fn place(&self, side: usize) -> usize {
        side.min(self.sides.len() - 1)
    }

    /// The rank of a side.
    pub fn id(&self, side: usize) -> PeerId {
        PeerId(self.place(side) as u32)
    }

    /// The rail number of a side.
    pub fn number(&self, side: usize) -> u8 {
        self.sides[self.place(side)].number
    }

    /// The rail of a side.
    pub fn rail(&mut self, side: usize) -> &mut dyn Driver {
        let place = self.place(side);
        &mut **self.sides[place].rail.as_mut().expect("the rail has not been dropped")
    }

    /// Ends a side, as the exit of a process does.
    pub fn end(&mut self, side: usize) {
        let place = self.place(side);
        self.sides[place].rail = None;
    }

    /// Orders that the rail of a side takes now.
    pub fn room(&self, side: usize) -> usize {
        self.sides[self.place(side)].rail.as_ref().map_or(0, |rail| rail.room())
    }

    /// Adds the result of a call to the events of a side.
    pub fn see(&mut self, side: usize, told: Seen) {
        let place = self.place(side);
        self.sides[place].record.add(told);
    }

    fn record(&self, side: usize) -> &Record {
        &self.sides[self.place(side)].record
    }

    fn events(&self) -> u64 {
        self.sides.iter().map(|side| side.record.events).sum()
    }

    /// The events of a side so far.
    pub fn seen(&self, side: usize) -> &[Seen] {
        &self.record(side).seen
    }

    /// Drops all events so far.
    pub fn forget(&mut self) {
        for Side { record, .. } in &mut self.sides {
            *record = Record { events: record.events, ..Record::default() };
        }
    }

    /// Polls one side once.
    pub fn poll(&mut self, side: usize) {
        (self.tick)();
        let place = self.place(side);
        let Side { rail, record, .. } = &mut self.sides[place];
        if let Some(rail) = rail {
            rail.poll(Scope::All, &mut |event| record.note(event));
        }
    }

    /// Polls one side for a packet of the other one; returns whether there was one. None: a full poll is
    /// needed.
    pub fn look_for(&mut self, side: usize) -> Option<bool> {
        (self.tick)();
        let (place, from) = (self.place(side), self.id(1 - side.min(1)));
        let Side { rail, record, .. } = &mut self.sides[place];
        let rail = rail.as_mut().filter(|rail| rail.limits().looks)?;
        let before = record.seen.len();
        let looked = rail.poll(Scope::Peer(from), &mut |event| record.note(event));
        looked.then_some(record.seen.len() > before)
    }

    /// Sends an order on the rail of a side.
    pub fn order(&mut self, side: usize, order: Order) {
        self.rail(side).send(Departure::Order(order));
    }

    /// Polls both sides until `done`.
    ///
    /// # Panics
    /// After 10 s.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&World) -> bool) {
        let (begun, mut empty) = (Instant::now(), 0);
        while !done(self) {
            let before = self.events();
            (0..self.sides.len()).for_each(|side| self.poll(side));
            empty = if self.events() == before { empty + 1 } else { 0 };
            if empty > EMPTY_POLLS {
                std::thread::sleep(PAUSE);
            }
            if begun.elapsed() > BOUND {
                let tail = |side: &Side| side.record.seen.iter().rev().take(4).map(brief).collect::<Vec<_>>();
                let last: Vec<_> = self.sides.iter().map(tail).collect();
                panic!("did not happen in time: {what}; last events of each side: {last:?}");
            }
        }
    }

    /// Posts one order, once the rail has room for it, and flushes.
    pub fn post(&mut self, side: usize, order: Order) {
        if matches!(order, Order::Packet { .. } | Order::Chunk { .. }) {
            self.until("the rail has room", |w| w.room(side) > 0);
        }
        self.order(side, order);
        self.rail(side).flush();
    }

    /// Opens the link from the first side, and drops the events of that.
    pub fn connect(&mut self) {
        let to = self.id(B);
        self.post(A, Order::Connect { to });
        self.until("the link is up on both sides", |w| w.count_up(A) > 0 && w.count_up(B) > 0);
        self.forget();
    }

    /// Number of `Up` events of a side.
    pub fn count_up(&self, side: usize) -> usize {
        self.record(side).up
    }

    /// Number of packets that arrived at a side.
    pub fn arrived(&self, side: usize) -> usize {
        self.record(side).arrived
    }

    /// Number of completed orders of a side.
    pub fn sent(&self, side: usize) -> usize {
        self.record(side).sent
    }

    /// Number of chunks that arrived at a side.
    pub fn landed(&self, side: usize) -> usize {
        self.record(side).landed
    }

    /// Returns whether a side lost its link.
    pub fn lost(&self, side: usize) -> bool {
        self.record(side).lost > 0
    }

    /// Number of orders that were returned with the loss of a link.
    pub fn returned(&self, side: usize) -> usize {
        let unsent = |seen: &Seen| if let Seen::Lost(_, unsent) = seen { unsent.len() } else { 0 };
        self.seen(side).iter().map(unsent).sum()
    }

    /// Posts a packet with the pattern of its number.
    pub fn post_packet(&mut self, side: usize, number: u32, len: usize) {
        let to = self.id(1 - side.min(1));
        let packet = Packet { bytes: packet(number, len), in_place: Vec::new() };
        self.post(side, Order::Packet { to, number, packet });
    }

    /// Posts a chunk.
    pub fn post_chunk(&mut self, number: u32, region: RegionId, key: Key, offset: u64, from: &Memory) {
        let to = self.id(B);
        self.post(A, Order::Chunk { to, number, ack: 7, region, key, offset, from: from.segments() });
    }

    /// Checks that exactly these packets arrived at a side, intact and in this order.
    pub fn check_arrived(&self, side: usize, expected: &[(u32, usize)]) {
        let from = self.id(1 - side.min(1));
        let packets = self.seen(side).iter().filter_map(|seen| match seen {
            Seen::Arrived(who, bytes) => Some((who, bytes)),
            _ => None,
        });
        let packets: Vec<_> = packets.collect();
        assert_eq!(packets.len(), expected.len(), "as many packets as were sent");
        for ((who, bytes), (number, len)) in packets.iter().zip(expected) {
            assert_eq!(**who, from, "the sender of packet {number}");
            assert!(**bytes == packet(*number, *len), "packet {number} of {len} B is intact");
        }
    }
}

/// Creates a packet of `len` bytes, header included, whose content depends on its number.
pub fn packet(number: u32, len: usize) -> Vec<u8> {
    let header = Header { kind: Kind::Packet, len: len as u32, number, ack: 0 };
    let mut bytes = vec![0; len];
    write_pattern(&mut bytes, u64::from(number));
    bytes[..Header::LEN].copy_from_slice(&header.encode());
    bytes
}

fn note(event: Event<'_>) -> Option<Seen> {
    Some(match event {
        Event::Moved { .. } | Event::Buffers { .. } => return None,
        Event::Carrier { .. } => {
            return None;
        }
        Event::Accessed { request, came, .. } => Seen::Accessed(request, came),
        Event::Pushed { request, len, .. } => Seen::Pushed(request, len),
        Event::Up { peer, remote } => Seen::Up(peer, remote),
        Event::Arrived { from, packet } => Seen::Arrived(from, packet.to_vec()),
        Event::Landed { number, ack, region, offset, len, kept, .. } => {
            assert_eq!(ack, 7, "the acknowledgement of chunk {number}");
            Seen::Landed(number, region, offset, len, kept)
        }
        Event::Sent { number, packet, .. } => Seen::Sent(number, packet.is_some()),
        Event::Lost { why, unsent, .. } => Seen::Lost(why, unsent.iter().map(number).collect()),
    })
}

fn number(order: &Order) -> u32 {
    match order {
        Order::Packet { number, .. } | Order::Chunk { number, .. } => *number,
        Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => panic!("returned: {order:?}"),
    }
}

fn brief(seen: &Seen) -> String {
    match seen {
        Seen::Arrived(_, bytes) => format!("Arrived({} B)", bytes.len()),
        other => format!("{other:?}"),
    }
}
