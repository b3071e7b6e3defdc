//! The driver: a queue from the sending to the receiving side of the same process.

use crate::regions::Regions;
use hashbrown::HashMap;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::access::{Access, Act, Atomics, Came, RemoteAccess};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Interest, Limits, Order, Scope, Sent};
use std::mem;

/// Orders taken before a poll has reported them.
const DEPTH: usize = 64;

/// A rail from a process to itself.
#[derive(Debug)]
pub struct LoopbackRail {
    me: PeerId,
    rail: u8,
    up: bool,
    regions: Regions,
    posted: Vec<Order>,
    /// The list that is being reported, kept to reuse its memory.
    moving: Vec<Order>,
    /// Orders of a link that was closed.
    unsent: Vec<Order>,
    /// Exposed memory with its address, and results of accesses to it.
    exposed: HashMap<Key, (u64, Segments)>,
    keys: u64,
    came: Vec<Event<'static>>,
    /// Buffer for a packet with its segments from user memory.
    whole: Vec<u8>,
}

impl LoopbackRail {
    /// Creates rail number `rail` of the process `me`.
    pub fn new(me: PeerId, rail: u8) -> Self {
        LoopbackRail {
            me,
            rail,
            up: false,
            regions: Regions::default(),
            posted: Vec::new(),
            moving: Vec::new(),
            unsent: Vec::new(),
            exposed: HashMap::new(),
            keys: 0,
            came: Vec::new(),
            whole: Vec::new(),
        }
    }

    // A separate function, because most polls find nothing.
    #[inline(never)]
    fn move_all(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let mut moving = mem::replace(&mut self.posted, mem::take(&mut self.moving));
        for order in moving.drain(..) {
            self.report(order, report);
        }
        self.moving = moving;
    }

    /// Carries out an access, if the link is open and the memory is exposed.
    fn reach(&self, Access { act, at, key, here, .. }: &Access) -> Option<()> {
        let (start, memory) = self.exposed.get(key).filter(|_| self.up)?;
        let offset = at.checked_sub(*start)?;
        let there = memory.slice(offset, here.len());
        if there.len() != here.len() {
            return None;
        }
        let mut bytes = Vec::new();
        there.append_to(&mut bytes);
        let word = bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        match *act {
            Act::Put => _ = there.copy_from(here),
            Act::Get => _ = here.copy_from(&there),
            Act::Add(number) => {
                here.write(0, &bytes);
                there.write(0, &word.wrapping_add(number).to_ne_bytes());
            }
            Act::Swap(old, new) => {
                here.write(0, &bytes);
                if word == old {
                    there.write(0, &new.to_ne_bytes());
                }
            }
        }
        Some(())
    }

    fn report(&mut self, order: Order, report: &mut dyn FnMut(Event<'_>)) {
        match order {
            Order::Connect { to } if to == self.me => {
                self.up = true;
                report(Event::Up { peer: to, remote: self.rail });
            }
            Order::Packet { to, number, packet } if to == self.me && self.up => {
                if packet.in_place.is_empty() {
                    report(Event::Arrived { from: to, packet: &packet.bytes });
                } else {
                    self.whole.clear();
                    packet.parts(|part| self.whole.extend_from_slice(part));
                    report(Event::Arrived { from: to, packet: &self.whole });
                }
                report(Event::Sent { to, number, packet: Some(packet) });
            }
            Order::Chunk { to, number, ack, region, key, offset, from } if to == self.me && self.up => {
                let len = from.len();
                let Ok(into) = self.regions.find(to, region, key, offset, len) else {
                    return self.lost(to, "chunk past the end of its region", None, report);
                };
                let kept = into.map(|into| into.copy_from(&from)).is_some();
                report(Event::Sent { to, number, packet: None });
                report(Event::Landed { from: to, number, ack, region, offset, len, kept });
            }
            Order::Close { to } => {
                self.up = false;
                let why = format!("rail loopback: peer {}: the link was closed by this side", to.0);
                report(Event::Lost { peer: to, why, unsent: mem::take(&mut self.unsent) });
            }
            // This rail never holds a pushed chunk.
            Order::Accept { .. } => {}
            Order::Connect { to } => self.lost(to, "only reaches its own process", None, report),
            Order::Packet { to, .. } | Order::Chunk { to, .. } => {
                self.lost(to, "no open link", Some(order), report);
            }
        }
    }

    fn lost(&self, peer: PeerId, why: &str, unsent: Option<Order>, report: &mut dyn FnMut(Event<'_>)) {
        let why = format!("rail loopback: peer {}: {why}", peer.0);
        report(Event::Lost { peer, why, unsent: unsent.into_iter().collect() });
    }
}

impl Driver for LoopbackRail {
    fn name(&self) -> &str {
        "loopback"
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: 72 << 10,
            chunk: 1 << 30,
            gather: 16,
            depth: DEPTH,
            lossy: false,
            bandwidth: 10_000_000_000,
            latency_ns: 100,
            remote: RemoteAccess::Network(Atomics::Adapter),
            ..Limits::default()
        }
    }

    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        self.regions.open(region, from, into)
    }

    fn close(&mut self, region: RegionId) {
        self.regions.close(region);
    }

    fn expose(&mut self, memory: Segments) -> Option<Key> {
        let mut pieces = memory.iter();
        let start = pieces.next().filter(|_| pieces.next().is_none())?.start.addr() as u64;
        drop(pieces);
        self.keys += 1;
        self.exposed.insert(Key(self.keys), (start, memory));
        Some(Key(self.keys))
    }

    fn conceal(&mut self, key: Key) {
        self.exposed.remove(&key);
    }

    fn access(&mut self, access: Access) -> Option<Came> {
        Some(if self.reach(&access).is_some() { Came::Done } else { Came::Undone })
    }

    fn room(&self) -> usize {
        DEPTH.saturating_sub(self.posted.len())
    }

    fn send(&mut self, departure: Departure<'_>) -> Sent {
        let Departure::Order(order) = departure else { return Sent::Retry };
        if let Order::Close { .. } = order {
            self.unsent.append(&mut self.posted);
        }
        self.posted.push(order);
        Sent::Posted
    }

    #[inline]
    fn poll(&mut self, _: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        self.came.drain(..).for_each(&mut *report);
        if !self.posted.is_empty() {
            self.move_all(report);
        }
        true
    }

    /// No other process sends here, so no sleeper needs a wakeup.
    fn wakeup(&mut self, _: Interest) -> Option<i32> {
        Some(-1)
    }

    fn know(&mut self, peer: PeerId, _rail: u8, _address: &str) -> bool {
        peer == self.me
    }
}
