//! A rail in memory to all other hosts, with time of its own and faults from a seed.
//!
//! It keeps an order until it is polled, and reads user memory only then, as a network adapter would. A
//! reliable rail delays what it carries (so rails overtake each other) but keeps its order; a lossy one
//! drops, repeats and reorders. A killed link returns the orders that it had not carried.
#![allow(dead_code)]

use super::memory::Memory;
use nmad_engine::{
    Access, Act, Came, Departure, Driver, Event, Key, Limits, Order, Packet, PeerId, PollScope, RegionId,
    RemoteAccess, Segments, Sent,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

/// Faults of a rail. Probabilities are out of 256.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Longest delay in nanoseconds.
    pub delay_ns: u64,
    /// Dropped, on lossy rails.
    pub drop: u8,
    /// Delivered twice, on lossy rails.
    pub repeat: u8,
}

#[derive(Debug, Clone)]
enum Item {
    Packet(Vec<u8>),
    Chunk { number: u32, ack: u32, region: RegionId, key: Key, offset: u64, bytes: Vec<u8> },
}

/// Rail, sender, receiver.
type Lane = (usize, u32, u32);

/// A packet or chunk that a rail carried.
#[derive(Debug, Clone)]
pub struct Carried {
    pub rail: usize,
    pub from: u32,
    pub is_packet: bool,
    /// The packet, or the data of the chunk.
    pub bytes: Vec<u8>,
}

/// State shared by all rails: the wires, the time, and the memory of the applications.
#[derive(Default)]
pub struct Wires {
    pub now: u64,
    rng: u64,
    pub faults: Faults,
    /// Time of arrival, and order of sending.
    under_way: BTreeMap<Lane, BTreeMap<(u64, u64), Item>>,
    left: u64,
    open: BTreeSet<Lane>,
    dead: BTreeSet<Lane>,
    /// Rails on which cut links can be opened again, and the links that are cut.
    pub mended: BTreeSet<usize>,
    anew: BTreeSet<Lane>,
    pub memory: Memory,
    /// Receive regions in buffers of the engines: rail, host, receive region.
    pub own: BTreeSet<(usize, u32, u64)>,
    /// The orders sent, if recorded.
    pub carried: Option<Vec<Carried>>,
    /// Rails (and their hosts) that hold their orders.
    pub stalled: BTreeSet<(usize, u32)>,
    /// Rails (and their hosts) that carry orders but do not report it and continue to use the memory.
    pub tardy: BTreeSet<(usize, u32)>,
    /// Results of sending at once, in turns; refused if empty.
    pub at_once: VecDeque<Sent>,
    /// The system allows no process to read another one's memory.
    pub refuses_copies: bool,
}

impl Wires {
    pub fn new(seed: u64) -> Wires {
        Wires { rng: seed << 1 | 1, ..Wires::default() }
    }

    /// Time of the next arrival.
    pub fn next_arrival(&self) -> Option<u64> {
        self.under_way.values().filter_map(|queue| queue.keys().next()).map(|&(at, _)| at).min()
    }

    fn random(&mut self) -> u64 {
        // xorshift64*
        self.rng ^= self.rng >> 12;
        self.rng ^= self.rng << 25;
        self.rng ^= self.rng >> 27;
        self.rng.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn carry(&mut self, lane: Lane, item: Item, lossy: bool) {
        if self.dead.contains(&lane) {
            return;
        }
        let Faults { delay_ns, drop, repeat } = self.faults;
        if let Some(carried) = &mut self.carried {
            let (is_packet, bytes) = match &item {
                Item::Packet(bytes) => (true, bytes.clone()),
                Item::Chunk { bytes, .. } => (false, bytes.clone()),
            };
            carried.push(Carried { rail: lane.0, from: lane.1, is_packet, bytes });
        }
        let chance = |wires: &mut Wires, of: u8| wires.random() % 256 < u64::from(of);
        if lossy && chance(self, drop) {
            return;
        }
        let times = 1 + u64::from(lossy && chance(self, repeat));
        for _ in 0..times {
            let mut at = self.now + 1 + self.random() % (delay_ns + 1);
            let queue = self.under_way.entry(lane).or_default();
            if !lossy {
                at = at.max(queue.keys().next_back().map_or(0, |last| last.0));
            }
            self.left += 1;
            queue.insert((at, self.left), item.clone());
        }
    }

    /// Cuts a link.
    pub fn kill(&mut self, rail: usize, a: u32, b: u32) {
        for lane in [(rail, a, b), (rail, b, a)] {
            self.dead.insert(lane);
            self.under_way.remove(&lane);
        }
    }
}

/// One rail of one host, to all other hosts.
pub struct MemoryRail {
    me: u32,
    number: usize,
    limits: Limits,
    wires: Arc<Mutex<Wires>>,
    held: Vec<Order>,
    /// Orders given after the link was lost, before that was reported.
    late: Vec<Order>,
    /// Accesses that were not done, and results of others.
    accesses: Vec<Access>,
    came: Vec<Event<'static>>,
    /// Carried but not reported: the memory is in use.
    unreported: Vec<(PeerId, u32, Option<Packet>, Vec<Segments>)>,
    up: BTreeSet<u32>,
    regions: BTreeMap<u64, (PeerId, Segments)>,
    accepted: Vec<(u32, Item)>,
    /// By sender: a pushed chunk whose receive region is not known yet, and the data behind it.
    pushed: BTreeMap<u32, VecDeque<Item>>,
    /// Links closed by the engine, to be answered; and answered ones.
    closed: BTreeSet<u32>,
    lost: BTreeSet<u32>,
}

fn receiver(order: &Order) -> u32 {
    match order {
        Order::Connect { to } | Order::Close { to } => to.0,
        Order::Packet { to, .. } | Order::Chunk { to, .. } => to.0,
        Order::Accept { from, .. } => from.0,
    }
}

/// A key differs from every receive region's identifier, so that they cannot be confused.
fn key_of(region: RegionId) -> Key {
    Key(region.0 ^ 0x55)
}

impl MemoryRail {
    pub fn new(me: u32, number: usize, limits: Limits, wires: Arc<Mutex<Wires>>) -> MemoryRail {
        MemoryRail {
            me,
            number,
            limits,
            wires,
            held: Vec::new(),
            late: Vec::new(),
            accesses: Vec::new(),
            came: Vec::new(),
            unreported: Vec::new(),
            up: BTreeSet::new(),
            regions: BTreeMap::new(),
            accepted: Vec::new(),
            pushed: BTreeMap::new(),
            closed: BTreeSet::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Opens links again that were cut.
    fn reopen_links(&mut self) {
        let mut wires = self.wires.lock().unwrap();
        wires.anew.retain(|&(rail, me, peer)| {
            let is_mine = (rail, me) == (self.number, self.me);
            if is_mine {
                for peers in [&mut self.lost, &mut self.closed, &mut self.up] {
                    peers.remove(&peer);
                }
            }
            !is_mine
        });
    }

    fn report_links(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        self.reopen_links();
        let (open, dead) = {
            let wires = self.wires.lock().unwrap();
            let mine = |lanes: &BTreeSet<Lane>| -> BTreeSet<u32> {
                lanes.iter().filter(|l| l.0 == self.number && l.1 == self.me).map(|l| l.2).collect()
            };
            (mine(&wires.open), mine(&wires.dead))
        };
        let gone: Vec<u32> = self.closed.iter().chain(&dead).copied().collect();
        for peer in gone {
            self.pushed.remove(&peer);
            if self.lost.insert(peer) {
                let unsent = self.give_back(peer);
                self.end_accesses(|access| (access.to.0 == peer).then_some(Came::Unknown));
                self.came.drain(..).for_each(&mut *report);
                report(Event::Lost { peer: PeerId(peer), why: "the link was cut".into(), unsent });
            }
        }
        for order in self.late.drain(..) {
            let (peer, why) = (PeerId(receiver(&order)), "there is no link".into());
            report(Event::Lost { peer, why, unsent: vec![order] });
        }
        for peer in open {
            if !self.lost.contains(&peer) && self.up.insert(peer) {
                report(Event::Up { peer: PeerId(peer), remote: self.number as u8 });
            }
        }
    }

    /// Returns orders for a peer that were not reported as sent. (A chunk that was sent already is known by
    /// its number.)
    fn give_back(&mut self, peer: u32) -> Vec<Order> {
        let (mut unsent, held): (Vec<_>, _) = self.held.drain(..).partition(|order| receiver(order) == peer);
        self.held = held;
        for (to, number, packet, memory) in std::mem::take(&mut self.unreported) {
            match packet {
                _ if to.0 != peer => self.unreported.push((to, number, packet, memory)),
                Some(packet) => unsent.push(Order::Packet { to, number, packet }),
                None => {}
            }
        }
        unsent
    }

    /// Ends the accesses for which `came` returns a result.
    fn end_accesses(&mut self, came: impl Fn(&Access) -> Option<Came>) {
        let of = |access: &Access| {
            let (to, request) = (access.to, access.request);
            came(access).map(|came| Event::Accessed { to, request, came })
        };
        self.came.extend(self.accesses.iter().filter_map(of));
        self.accesses.retain(|access| came(access).is_none());
    }

    /// Copies from memory of another host that is in use by its request.
    fn copy(&self, access: &Access) -> Came {
        let wires = self.wires.lock().unwrap();
        assert_eq!(access.act, Act::Get);
        if wires.refuses_copies {
            return Came::Undone;
        }
        wires.memory.check_lent(&access.here);
        access.here.copy_from(&wires.memory.at(access.at, access.here.len()));
        Came::Done
    }

    /// Carries out accesses, unless the rail holds its orders.
    fn reach(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let is_stalled = {
            let wires = self.wires.lock().unwrap();
            self.accesses.iter().for_each(|access| wires.memory.check_lent(&access.here));
            wires.stalled.contains(&(self.number, self.me))
        };
        self.end_accesses(|_| (!is_stalled).then_some(Came::Done));
        self.came.drain(..).for_each(report);
    }

    /// Reads user memory and puts the bytes on the wire.
    fn transmit(&mut self) {
        let mut wires = self.wires.lock().unwrap();
        if wires.stalled.contains(&(self.number, self.me)) {
            return;
        }
        for order in self.held.drain(..) {
            let lane = (self.number, self.me, receiver(&order));
            let mut bytes = Vec::new();
            match order {
                Order::Packet { to, number, packet } => {
                    let memory: Vec<_> = packet.in_place.iter().map(|(_, data)| data.clone()).collect();
                    memory.iter().for_each(|data| wires.memory.check_lent(data));
                    packet.parts(|part| bytes.extend_from_slice(part));
                    assert!(bytes.len() <= self.limits.packet, "a packet longer than its rail allows");
                    wires.carry(lane, Item::Packet(bytes), self.limits.lossy);
                    self.unreported.push((to, number, Some(packet), memory));
                }
                Order::Chunk { to, number, ack, region, key, offset, from } => {
                    wires.memory.check_lent(&from);
                    assert!(from.len() <= self.limits.chunk, "a chunk longer than its rail allows");
                    from.append_to(&mut bytes);
                    let item = Item::Chunk { number, ack, region, key, offset, bytes };
                    wires.carry(lane, item, self.limits.lossy);
                    self.unreported.push((to, number, None, vec![from]));
                }
                Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => {
                    unreachable!("not held")
                }
            }
        }
    }

    /// Releases the memory of carried orders.
    fn report_sent(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        {
            let wires = self.wires.lock().unwrap();
            if wires.tardy.contains(&(self.number, self.me)) {
                return;
            }
            let memory = self.unreported.iter().flat_map(|(_, _, _, memory)| memory);
            memory.for_each(|data| wires.memory.check_lent(data));
        }
        for (to, number, packet, _) in self.unreported.drain(..) {
            report(Event::Sent { to, number, packet });
        }
    }

    fn arrivals(&mut self) -> Vec<(u32, Item)> {
        let mut wires = self.wires.lock().unwrap();
        let now = wires.now;
        let mut found = Vec::new();
        for (&(rail, from, to), queue) in &mut wires.under_way {
            if (rail, to) != (self.number, self.me) || self.pushed.contains_key(&from) {
                continue;
            }
            if self.lost.contains(&from) {
                queue.clear();
            } else if self.up.contains(&from) {
                let later = queue.split_off(&(now + 1, 0));
                found.extend(std::mem::replace(queue, later).into_values().map(|item| (from, item)));
            }
        }
        found
    }

    fn land(&mut self, from: u32, item: Item) -> Option<Event<'static>> {
        let Item::Chunk { number, ack, region, key, offset, bytes } = item else { return None };
        let len = bytes.len() as u64;
        let place = self.regions.get(&region.0).filter(|(owner, into)| {
            let inside = offset.checked_add(len).is_some_and(|end| end <= into.len());
            owner.0 == from && key == key_of(region) && inside
        });
        if let Some((_, into)) = place {
            let wires = self.wires.lock().unwrap();
            if !wires.own.contains(&(self.number, self.me, region.0)) {
                wires.memory.check_lent(&into.slice(offset, len));
            }
            into.write(offset, &bytes);
        }
        Some(Event::Landed { from: PeerId(from), number, ack, region, offset, len, kept: place.is_some() })
    }
}

impl MemoryRail {
    fn accept(&mut self, from: PeerId, region: RegionId) {
        let mut held = self.pushed.remove(&from.0).expect("a pushed chunk is held");
        if let Some(Item::Chunk { region: place, key, .. }) = held.front_mut() {
            (*place, *key) = (region, key_of(region));
        }
        self.accepted.extend(held.into_iter().map(|item| (from.0, item)));
    }

    /// Sends orders at once, with the next configured result.
    fn depart(&mut self, orders: Vec<Order>) -> Sent {
        let how = {
            let mut wires = self.wires.lock().unwrap();
            let stalled = wires.stalled.contains(&(self.number, self.me));
            let turn = wires.at_once.pop_front();
            wires.at_once.extend(turn);
            turn.filter(|_| self.held.is_empty() && !stalled).unwrap_or(Sent::Retry)
        };
        if how == Sent::Retry {
            return how;
        }
        orders.into_iter().for_each(|order| self.post(order));
        if how == Sent::Done {
            let before = self.unreported.len();
            self.transmit();
            self.unreported.truncate(before);
        }
        how
    }

    fn post(&mut self, order: Order) {
        let peer = receiver(&order);
        match order {
            Order::Connect { to } => {
                let lanes = [(self.number, self.me, to.0), (self.number, to.0, self.me)];
                let mut wires = self.wires.lock().unwrap();
                wires.open.extend(lanes);
                if wires.mended.contains(&self.number) && lanes.iter().any(|lane| wires.dead.remove(lane)) {
                    lanes.iter().for_each(|lane| _ = wires.dead.remove(lane));
                    wires.anew.extend(lanes);
                }
            }
            Order::Close { to } => {
                self.closed.insert(to.0);
                self.regions.retain(|_, (from, _)| *from != to);
                if !self.limits.lossy {
                    self.wires.lock().unwrap().kill(self.number, self.me, to.0);
                }
            }
            Order::Accept { from, region } => self.accept(from, region),
            order => {
                assert!(self.up.contains(&peer) && !self.lost.contains(&peer), "an order for a closed link");
                let cut = self.wires.lock().unwrap().dead.contains(&(self.number, self.me, peer));
                let gone = cut || self.closed.contains(&peer);
                if gone { self.late.push(order) } else { self.held.push(order) }
            }
        }
    }
}

impl Driver for MemoryRail {
    fn name(&self) -> &str {
        "memory"
    }
    fn limits(&self) -> Limits {
        self.limits
    }
    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        let mut wires = self.wires.lock().unwrap();
        if !wires.memory.is_lent(&into) {
            wires.own.insert((self.number, self.me, region.0));
        }
        self.regions.insert(region.0, (from, into));
        key_of(region)
    }
    fn close(&mut self, region: RegionId) {
        self.wires.lock().unwrap().own.remove(&(self.number, self.me, region.0));
        self.regions.remove(&region.0);
    }
    fn access(&mut self, access: Access) -> Option<Came> {
        let cut = self.wires.lock().unwrap().dead.contains(&(self.number, self.me, access.to.0));
        if cut || self.lost.contains(&access.to.0) {
            return Some(Came::Undone);
        }
        if self.limits.remote == RemoteAccess::Copies {
            return Some(self.copy(&access));
        }
        self.accesses.push(access);
        None
    }
    fn room(&self) -> usize {
        16 - self.held.len().min(16)
    }
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Order(order) => {
                self.post(order);
                Sent::Posted
            }
            Departure::Message { to, number, head, data, .. } => {
                let mut bytes = Vec::new();
                data.append_behind(head, &mut bytes);
                let packet = Packet { bytes, in_place: Vec::new() };
                self.depart(vec![Order::Packet { to, number, packet }])
            }
            Departure::Pushed { packet, chunk } => {
                let Order::Chunk { to, number, .. } = chunk else { panic!("a chunk is pushed") };
                let packet = Packet { bytes: packet.to_vec(), in_place: Vec::new() };
                self.depart(vec![Order::Packet { to, number: number.wrapping_sub(1), packet }, chunk])
            }
        }
    }
    fn poll(&mut self, scope: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        assert_eq!(scope, PollScope::All, "asked for what the limits do not offer");
        self.report_links(report);
        self.reach(report);
        self.transmit();
        self.report_sent(report);
        let mut arrived: VecDeque<_> = std::mem::take(&mut self.accepted).into();
        arrived.extend(self.arrivals());
        for (from, item) in arrived {
            match item {
                item if self.pushed.contains_key(&from) => {
                    self.pushed.entry(from).or_default().push_back(item);
                }
                Item::Packet(bytes) => report(Event::Arrived { from: PeerId(from), packet: &bytes }),
                Item::Chunk { region, key: Key::PUSH, ref bytes, .. } => {
                    let (request, len) = (region.0, bytes.len() as u64);
                    self.pushed.insert(from, VecDeque::from([item]));
                    report(Event::Pushed { from: PeerId(from), request, len });
                }
                chunk => self.land(from, chunk).into_iter().for_each(&mut *report),
            }
        }
        true
    }
}
