//! Several engines and rails between them in memory, and applications that use them.
#![allow(dead_code)]

#[path = "memory.rs"]
pub mod memory;
#[path = "rail.rs"]
pub mod rail;

use memory::{BufferId, Memory};
use nmad_engine::{
    Caller, Completion, Config, Context, Driver, Engine, Envelope, Error, Hints, Instant, Limits, Notice,
    PeerId, Refused, RequestId, Source, Submitted, Tag, TagMatch, pump,
};
use rail::{Carried, Faults, MemoryRail, Wires};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Result of a request.
pub type Outcome = Result<Envelope, Error>;

/// A host: an engine, its rails, and the results of its requests.
pub struct Host {
    pub engine: Engine,
    pub rails: Vec<Box<dyn Driver>>,
    pub ended: BTreeMap<RequestId, Outcome>,
    /// The order in which they ended.
    pub order: Vec<RequestId>,
    pub notices: Vec<Notice>,
    /// Nanoseconds by which its clock is ahead of the time of the wires.
    pub ahead: i64,
}

impl Host {
    /// Returns the time of its clock at the time `now` of the wires.
    fn clock(&self, now: u64) -> Instant {
        Instant::from_ns(now.saturating_add_signed(self.ahead))
    }
}

/// Hosts and the wires between them.
pub struct Net {
    pub hosts: Vec<Host>,
    wires: Arc<Mutex<Wires>>,
    pub now: u64,
    /// Buffers by the requests that use them, and whether they are sent from.
    lent: BTreeMap<(usize, RequestId), (BufferId, bool)>,
}

/// Limits that suit most tests.
pub fn limits() -> Limits {
    Limits { packet: 16 << 10, chunk: 1 << 20, gather: 8, depth: 4, ..Limits::default() }
}

/// Bytes that differ with `seed` and from place to place.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mixed = |i: u64| (seed >> (i % 2 * 8)).wrapping_mul(0x9d);
    let byte = |i: u64| i.wrapping_mul(31) ^ (i >> 8).wrapping_mul(7) ^ mixed(i);
    (0..len as u64).map(|i| byte(i) as u8).collect()
}

pub fn exact(tag: u64) -> TagMatch {
    TagMatch::Exact(Tag(tag))
}

pub fn from(peer: u32) -> Source {
    Source::Peer(PeerId(peer))
}

impl Net {
    /// Every host can reach every other over every rail.
    pub fn new(hosts: u32, rails: &[Limits], config: &Config, seed: u64) -> Net {
        let wires = Arc::new(Mutex::new(Wires::new(seed)));
        let host = |me: u32| {
            let mut engine = Engine::new(Config { me: PeerId(me), ..config.clone() }).expect("a strategy");
            let add = |(number, &limits): (usize, &Limits)| {
                let rail = engine.setup().add_rail(limits);
                (0..hosts)
                    .filter(|&peer| peer != me)
                    .for_each(|peer| engine.setup().add_link(PeerId(peer), rail));
                Box::new(MemoryRail::new(me, number, limits, wires.clone())) as Box<dyn Driver>
            };
            let rails = rails.iter().enumerate().map(add).collect();
            Host { engine, rails, ended: BTreeMap::new(), order: Vec::new(), notices: Vec::new(), ahead: 0 }
        };
        Net { hosts: (0..hosts).map(host).collect(), wires, now: 0, lent: BTreeMap::new() }
    }

    /// Two hosts with `rails` equal rails.
    pub fn pair(rails: usize, config: Config) -> Net {
        Net::new(2, &vec![limits(); rails], &config, 1)
    }

    /// Two hosts whose links are up, and whose senders know their credit.
    pub fn met(rails: &[Limits], config: Config) -> Net {
        let mut net = Net::new(2, rails, &config, 1);
        let pairs = [(0, 1), (1, 0)].map(|(at, to)| {
            net.send(at, to, 99, 0, &[1]);
            net.recv(to as usize, from(at as u32), 99, exact(0), 1)
        });
        net.settle();
        assert!(pairs.iter().enumerate().all(|(at, pair)| net.got(1 - at, *pair, &[1])));
        net.carried();
        net
    }

    pub fn wires(&self) -> MutexGuard<'_, Wires> {
        self.wires.lock().unwrap()
    }

    /// Runs one pass of a host's pump; its application records completed requests.
    pub fn turn(&mut self, host: usize, urgent: bool) -> bool {
        self.wires().now = self.now;
        let now = self.hosts[host].clock(self.now);
        let Host { engine, rails, .. } = &mut self.hosts[host];
        let happened = pump::turn(&mut pump::Exclusive(engine, rails), now, &mut || now, urgent);
        self.record_completions(host);
        happened
    }

    fn record_completions(&mut self, at: usize) {
        let mut wires = self.wires.lock().unwrap();
        let host = &mut self.hosts[at];
        while let Some(Completion { request, result }) = host.engine.next_completion() {
            assert!(host.ended.insert(request, result).is_none(), "{request:?} ended twice");
            host.order.push(request);
            if let Some((buffer, sent)) = self.lent.remove(&(at, request)) {
                wires.memory.end(buffer, sent);
            }
        }
        host.notices.extend(std::iter::from_fn(|| host.engine.next_notice()));
    }

    /// Runs all hosts and advances time until nothing happens any more. It is an error if that never
    /// happens.
    pub fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..100_000 {
            let happened = (0..self.hosts.len()).fold(false, |any, host| self.turn(host, true) | any);
            quiet = if happened { 0 } else { quiet + 1 };
            let next = self.next_event();
            if quiet > 4 && next.is_none() {
                return;
            }
            assert!(quiet < 3_000, "something is due, but never happens: {}", self.views());
            // Deadlines without effect are skipped in ever longer steps.
            let step = 1_000 << (quiet / 4).min(14);
            self.now = match next {
                Some(at) if quiet > 0 => at.max(self.now + step),
                _ => self.now + 1_000,
            };
        }
        panic!("the network does not come to rest");
    }

    /// The state of every host, for failure messages.
    pub fn views(&self) -> String {
        let mut text = format!("now {}, waiting {:?}", self.now, self.lent.keys());
        for (at, host) in self.hosts.iter().enumerate() {
            text +=
                &format!("\nhost {at}: due {:?}", host.engine.inspect().next_deadline().map(Instant::as_ns));
            let peers = (0..self.hosts.len() as u32).map(PeerId);
            let views = peers.filter_map(|peer| Some((peer.0, host.engine.inspect().peer_view(peer)?)));
            views.for_each(|(peer, view)| text += &format!("\n    to {peer}: {view:?}"));
        }
        text
    }

    /// When the next arrival or deadline is due.
    fn next_event(&self) -> Option<u64> {
        let due = self.hosts.iter().filter_map(|host| {
            let deadline = host.engine.inspect().next_deadline()?;
            Some(deadline.as_ns().saturating_add_signed(-host.ahead))
        });
        self.wires().next_arrival().into_iter().chain(due).min()
    }

    pub fn set_faults(&mut self, faults: Faults) {
        self.wires().faults = faults;
    }

    /// Cuts the link of two hosts on one rail.
    pub fn kill(&mut self, rail: usize, a: u32, b: u32) {
        let mut wires = self.wires();
        wires.mended.remove(&rail);
        wires.kill(rail, a, b);
    }

    /// Lets a rail of a host hold its orders until it is released.
    pub fn stall(&mut self, rail: usize, host: u32, stalled: bool) {
        let mut wires = self.wires();
        match stalled {
            true => wires.stalled.insert((rail, host)),
            false => wires.stalled.remove(&(rail, host)),
        };
    }

    /// The orders carried since the last call; the first call begins the record.
    pub fn carried(&mut self) -> Vec<Carried> {
        self.wires().carried.replace(Vec::new()).unwrap_or_default()
    }

    /// The frames that a host sent since the last call, in words, by rail.
    pub fn said(&mut self, host: u32) -> Vec<(usize, String)> {
        let text = |c: Carried| match c.is_packet {
            true => (c.rail, nmad_wire::explain(&c.bytes).to_string()),
            false => (c.rail, format!("chunk of {} B", c.bytes.len())),
        };
        self.carried().into_iter().filter(|c| c.from == host).map(text).collect()
    }

    /// Uses the memory of the applications.
    pub fn memory<T>(&mut self, with: impl FnOnce(&mut Memory) -> T) -> T {
        with(&mut self.wires().memory)
    }

    /// Assigns a buffer to this request until it ends.
    pub fn lend(&mut self, host: usize, request: RequestId, buffer: BufferId, sent: bool) {
        self.lent.insert((host, request), (buffer, sent));
        self.record_completions(host);
    }

    pub fn send(&mut self, at: usize, to: u32, context: u32, tag: u64, data: &[u8]) -> RequestId {
        self.send_with(at, to, context, tag, data, Hints::default())
    }

    pub fn send_with(
        &mut self,
        at: usize,
        to: u32,
        context: u32,
        tag: u64,
        data: &[u8],
        hints: Hints,
    ) -> RequestId {
        let (buffer, segments) = self.memory(|memory| memory.lend(data, 0));
        let request = self.hosts[at].engine.send(PeerId(to), Context(context), Tag(tag), segments, hints);
        self.lend(at, request, buffer, true);
        request
    }

    /// Sends at once, as this caller, if possible.
    ///
    /// # Errors
    /// It is not possible, and the message has to be submitted with [`Net::send_as`].
    pub fn send_at_once(
        &mut self,
        at: usize,
        (to, context, tag): (u32, u32, u64),
        data: &[u8],
        hints: Hints,
        caller: Caller,
    ) -> Result<Submitted, Option<Refused>> {
        let (buffer, segments) = self.memory(|memory| memory.lend(data, 0));
        let (now, to) = (Instant::from_ns(self.now), (PeerId(to), Context(context), Tag(tag)));
        let Host { engine, rails, .. } = &mut self.hosts[at];
        let node = &mut pump::Exclusive(engine, rails);
        let sent = pump::send_at_once(node, &to, (&segments, hints), caller, &mut || now);
        match sent {
            Ok(Submitted::Request(request)) => self.lend(at, request, buffer, true),
            Ok(Submitted::Ended(_)) | Err(_) => self.memory(|memory| memory.end(buffer, true)),
        }
        sent
    }

    /// Sends through the window, after a rail has refused the message if `refused` says so.
    pub fn send_as(
        &mut self,
        at: usize,
        (to, context, tag): (u32, u32, u64),
        data: &[u8],
        refused: Option<Refused>,
    ) -> RequestId {
        let (buffer, segments) = self.memory(|memory| memory.lend(data, 0));
        let to = (PeerId(to), Context(context), Tag(tag));
        let engine = &mut self.hosts[at].engine;
        let request = engine.send_as(to, segments, Hints::default(), refused);
        self.lend(at, request, buffer, true);
        request
    }

    pub fn recv(
        &mut self,
        at: usize,
        from: Source,
        context: u32,
        tag: TagMatch,
        len: usize,
    ) -> (RequestId, BufferId) {
        let (buffer, segments) = self.memory(|memory| memory.lend_blank(len, 0));
        let request = self.hosts[at].engine.recv(from, Context(context), tag, segments);
        self.lend(at, request, buffer, false);
        (request, buffer)
    }

    pub fn cancel(&mut self, at: usize, request: RequestId) -> bool {
        let cancelled = self.hosts[at].engine.cancel(request);
        self.record_completions(at);
        cancelled
    }

    pub fn result(&self, at: usize, request: RequestId) -> Option<Outcome> {
        self.hosts[at].ended.get(&request).copied()
    }

    /// Whether a receive ended with just this message.
    pub fn got(&mut self, at: usize, (request, buffer): (RequestId, BufferId), data: &[u8]) -> bool {
        let whole =
            matches!(self.result(at, request), Some(Ok(envelope)) if envelope.len == data.len() as u64);
        whole && self.memory(|memory| memory.holds(buffer, data))
    }

    /// Requests of all hosts that have not ended.
    pub fn pending(&self) -> usize {
        self.hosts.iter().map(|host| host.engine.inspect().pending()).sum()
    }
}
