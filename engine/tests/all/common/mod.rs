//! Two engines and the simplest rails between them: queues in memory, delivered at the next poll.

use nmad_engine::{
    Completion, Config, Context, Departure, Driver, Engine, Envelope, Error, Event, Hints, Instant, Key,
    Limits, Order, PeerId, PollScope, RegionId, RequestId, Segments, Sent, Source, Tag, TagMatch, pump,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

type Wire = Arc<Mutex<VecDeque<Order>>>;

/// One end of a rail to one peer.
pub struct QueueRail {
    peer: PeerId,
    number: u8,
    out: Wire,
    incoming: Wire,
    sent: Vec<(u32, Option<nmad_engine::Packet>)>,
    up: Option<bool>,
    lost: bool,
    regions: BTreeMap<u64, Segments>,
    pub cut: Arc<Mutex<bool>>,
    limits: Limits,
    pub seen: Arc<Mutex<Vec<String>>>,
}

pub fn limits() -> Limits {
    Limits { packet: 16 << 10, chunk: 1 << 20, gather: 8, depth: 4, looks: true, ..Limits::default() }
}

/// Methods that a rail around another one, its `inner`, forwards to it.
macro_rules! leave_to_inner {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }
        fn limits(&self) -> Limits {
            self.inner.limits()
        }
        fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
            self.inner.open(region, from, into)
        }
        fn close(&mut self, region: RegionId) {
            self.inner.close(region);
        }
        fn room(&self) -> usize {
            self.inner.room()
        }
    };
}
pub(crate) use leave_to_inner;

impl Driver for QueueRail {
    fn name(&self) -> &str {
        "queue"
    }
    fn limits(&self) -> Limits {
        self.limits
    }
    fn open(&mut self, region: RegionId, _: PeerId, into: Segments) -> Key {
        self.regions.insert(region.0, into);
        Key(region.0)
    }
    fn close(&mut self, region: RegionId) {
        self.regions.remove(&region.0);
    }
    fn room(&self) -> usize {
        16
    }
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        let Departure::Order(order) = departure else { return Sent::Retry };
        match order {
            Order::Connect { .. } => self.up = Some(true),
            Order::Close { .. } => self.lost = true,
            Order::Packet { number, packet, to } => {
                let mut bytes = Vec::new();
                packet.parts(|part| bytes.extend_from_slice(part));
                self.seen.lock().unwrap().push(nmad_wire::explain(&bytes).to_string());
                let copy = nmad_engine::Packet { bytes, in_place: Vec::new() };
                self.out.lock().unwrap().push_back(Order::Packet { to, number, packet: copy });
                self.sent.push((number, Some(packet)));
            }
            Order::Chunk { number, .. } => {
                self.sent.push((number, None));
                self.seen.lock().unwrap().push(format!("{order:?}"));
                self.out.lock().unwrap().push_back(order);
            }
            Order::Accept { .. } => panic!("nothing is pushed here"),
        }
        Sent::Posted
    }
    fn poll(&mut self, scope: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if let PollScope::Peer(from) = scope {
            return self.look_for(from, report);
        }
        if self.up.take().is_some() {
            report(Event::Up { peer: self.peer, remote: self.number });
        }
        if *self.cut.lock().unwrap() && !self.lost {
            self.lost = true;
            self.out.lock().unwrap().clear();
            self.sent.clear();
            report(Event::Lost { peer: self.peer, why: "cut".into(), unsent: Vec::new() });
            return true;
        }
        for (number, packet) in self.sent.drain(..) {
            report(Event::Sent { to: self.peer, number, packet });
        }
        while let Some(order) = { self.incoming.lock().unwrap().pop_front() } {
            match order {
                Order::Packet { packet, .. } => {
                    report(Event::Arrived { from: self.peer, packet: &packet.bytes })
                }
                Order::Chunk { number, ack, region, offset, from, .. } => {
                    let place = self.regions.get(&region.0);
                    place.map(|into| into.slice(offset, from.len()).copy_from(&from));
                    let (kept, len, from) = (place.is_some(), from.len(), self.peer);
                    report(Event::Landed { from, number, ack, region, offset, len, kept });
                }
                _ => {}
            }
        }
        true
    }
}

impl QueueRail {
    fn look_for(&mut self, from: PeerId, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let mut incoming = self.incoming.lock().unwrap();
        match incoming.front() {
            None => return true,
            Some(Order::Packet { packet, .. }) => report(Event::Arrived { from, packet: &packet.bytes }),
            Some(_) => return false,
        }
        incoming.pop_front();
        true
    }
}

/// A host: an engine and its rails.
pub struct Host {
    pub engine: Engine,
    pub rails: Vec<Box<dyn Driver>>,
    pub now: u64,
    pub done: BTreeMap<RequestId, Result<Envelope, Error>>,
}

impl Host {
    pub fn turn(&mut self, urgent: bool) {
        self.now += 1000;
        let now = self.now;
        pump::turn(
            &mut pump::Exclusive(&mut self.engine, &mut self.rails),
            Instant::from_ns(now),
            &mut || Instant::from_ns(now),
            urgent,
        );
        while let Some(Completion { request, result }) = self.engine.next_completion() {
            assert!(self.done.insert(request, result).is_none(), "{request:?} ended twice");
        }
    }
}

pub struct Pair {
    pub hosts: [Host; 2],
    pub cuts: Vec<Arc<Mutex<bool>>>,
    /// The packets and chunks that rail r of host 0 carried.
    pub seen: Vec<Arc<Mutex<Vec<String>>>>,
}

impl Pair {
    pub fn new(rails: usize, config: Config) -> Pair {
        Pair::with(rails, config, limits())
    }

    pub fn with(rails: usize, config: Config, limits: Limits) -> Pair {
        let wires: Vec<[Wire; 2]> = (0..rails).map(|_| Default::default()).collect();
        let cuts: Vec<Arc<Mutex<bool>>> = (0..rails).map(|_| Default::default()).collect();
        let seen: Vec<Arc<Mutex<Vec<String>>>> = (0..rails).map(|_| Default::default()).collect();
        let hosts = [0, 1].map(|me: usize| {
            let mut engine = Engine::new(Config { me: PeerId(me as u32), ..config.clone() }).unwrap();
            let mut drivers: Vec<Box<dyn Driver>> = Vec::new();
            for (number, wire) in wires.iter().enumerate() {
                let rail = engine.setup().add_rail(limits);
                engine.setup().add_link(PeerId(1 - me as u32), rail);
                drivers.push(Box::new(QueueRail {
                    peer: PeerId(1 - me as u32),
                    number: number as u8,
                    out: wire[me].clone(),
                    incoming: wire[1 - me].clone(),
                    sent: Vec::new(),
                    up: Some(true),
                    lost: false,
                    regions: BTreeMap::new(),
                    cut: cuts[number].clone(),
                    limits,
                    seen: if me == 0 { seen[number].clone() } else { Default::default() },
                }));
            }
            Host { engine, rails: drivers, now: 0, done: BTreeMap::new() }
        });
        Pair { hosts, cuts, seen }
    }

    /// Tells each host the rails and addresses of the other.
    pub fn connect(&mut self) {
        for _ in 0..2 {
            self.send(0, 9, 9, pattern(1));
            self.recv(1, Source::Peer(PeerId(0)), 9, TagMatch::Any, 1);
            self.settle();
        }
    }

    /// Lets the second host poll for a packet of the first and nothing else; returns whether there was one.
    pub fn look_for(&mut self) -> Option<bool> {
        let host = &mut self.hosts[1];
        let node = &mut pump::Exclusive(&mut host.engine, &mut host.rails);
        pump::look_for(node, Instant::from_ns(host.now), PeerId(0))
    }

    pub fn settle(&mut self) {
        for _ in 0..200 {
            self.hosts.iter_mut().for_each(|host| host.turn(true));
        }
    }

    pub fn send(&mut self, from: usize, context: u32, tag: u64, data: &'static [u8]) -> RequestId {
        self.send_with(from, context, tag, data, Hints::default())
    }

    pub fn send_with(
        &mut self,
        from: usize,
        context: u32,
        tag: u64,
        data: &'static [u8],
        hints: Hints,
    ) -> RequestId {
        self.hosts[from].engine.send(
            PeerId(1 - from as u32),
            Context(context),
            Tag(tag),
            segments(data),
            hints,
        )
    }

    /// Receives into leaked memory, so that tests need no lifetimes.
    pub fn recv(
        &mut self,
        at: usize,
        from: Source,
        context: u32,
        tag: TagMatch,
        len: usize,
    ) -> (RequestId, *const [u8]) {
        let (into, memory) = memory(len);
        (self.hosts[at].engine.recv(from, Context(context), tag, into), memory)
    }

    pub fn result(&self, at: usize, request: RequestId) -> Option<Result<Envelope, Error>> {
        self.hosts[at].done.get(&request).copied()
    }
}

/// Memory for a receive, which lives as long as the program.
pub fn memory(len: usize) -> (Segments, *const [u8]) {
    let memory = Box::leak(vec![0u8; len].into_boxed_slice());
    // SAFETY: leaked memory that only one receive at a time writes.
    let into = unsafe { Segments::from_raw(memory.as_mut_ptr(), len) };
    (into, memory)
}

/// Data to send.
pub fn segments(data: &'static [u8]) -> Segments {
    // SAFETY: static memory, only read.
    unsafe { Segments::from_raw(data.as_ptr().cast_mut(), data.len()) }
}

pub fn bytes(memory: *const [u8]) -> &'static [u8] {
    // SAFETY: leaked by `Pair::recv`; its receive has ended.
    unsafe { &*memory }
}

pub fn pattern(len: usize) -> &'static [u8] {
    Box::leak((0..len).map(|i| (i * 31 + i / 255) as u8).collect::<Vec<_>>().into_boxed_slice())
}
