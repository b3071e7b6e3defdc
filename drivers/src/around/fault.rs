//! A layer that injects faults, reproducibly for a given seed.
//!
//! Loss, duplication, reordering and delay happen to arriving packets, and only if the rail is lossy or the
//! layer pretends that it is. A link can be killed after a number of bytes, and bytes can be corrupted for
//! tests.

use super::held::Held;
use super::{Layer, addressee, size};
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::access::RemoteAccess;
use nmad_engine::transfer::driver::{Departure, Driver, Event, Limits, Order, Scope, Sent};

/// The faults and their rates: each rate is a probability per packet between zero and one.
#[derive(Debug, Clone, PartialEq)]
pub struct Faults {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Report the rail as lossy although the wrapped one is not.
    pub pretend_lossy: bool,
    /// Rate of lost packets.
    pub drop: f64,
    /// Rate of packets that arrive twice.
    pub duplicate: f64,
    /// Rate of packets that arrive some polls later, behind others.
    pub delay: f64,
    /// Longest delay in polls.
    pub delay_polls: u64,
    /// Rate of packets with one changed bit, on any rail.
    pub corrupt: f64,
    /// Bytes posted to a peer after which its link is lost.
    pub kill_after: Option<u64>,
}

impl Faults {
    /// No faults.
    pub fn none(seed: u64) -> Self {
        Faults {
            seed,
            pretend_lossy: false,
            drop: 0.0,
            duplicate: 0.0,
            delay: 0.0,
            delay_polls: 100,
            corrupt: 0.0,
            kill_after: None,
        }
    }
}

/// The layer.
#[derive(Debug)]
pub struct Fault {
    faults: Faults,
    random: u64,
    polls: u64,
    /// Packets that arrive in the poll with this number.
    delayed: Vec<(u64, Held)>,
    links: Vec<LinkState>,
}

/// State of the link to a peer.
#[derive(Debug)]
struct LinkState {
    peer: PeerId,
    posted: u64,
    /// Orders that the rail has taken.
    inside: usize,
    /// Orders withheld because the link is about to be lost.
    unsent: Vec<Order>,
    /// Why it was closed, until the rail reports its loss.
    killed: Option<String>,
}

impl Fault {
    /// Creates a layer that injects these faults.
    pub fn new(faults: Faults) -> Self {
        Fault { random: faults.seed, faults, polls: 0, delayed: Vec::new(), links: Vec::new() }
    }

    /// The faults, which can be changed.
    pub fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// The next random number (splitmix64).
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn happens(&mut self, rate: f64) -> bool {
        rate > 0.0 && ((self.next() >> 11) as f64) < rate * (1u64 << 53) as f64
    }

    fn link(&mut self, peer: PeerId) -> &mut LinkState {
        let place = self.links.iter().position(|link| link.peer == peer).unwrap_or_else(|| {
            self.links.push(LinkState { peer, posted: 0, inside: 0, unsent: Vec::new(), killed: None });
            self.links.len() - 1
        });
        &mut self.links[place]
    }

    /// Delivers an arrived packet, with faults.
    fn arrive(&mut self, from: PeerId, packet: &[u8], lossy: bool, report: &mut dyn FnMut(Event<'_>)) {
        let corrupt = self.happens(self.faults.corrupt);
        if !lossy && !corrupt {
            return report(Event::Arrived { from, packet });
        }
        let mut copy = packet.to_vec();
        if corrupt {
            let bit = self.next() as usize % (copy.len() * 8).max(1);
            copy[bit / 8] ^= 1 << (bit % 8);
        }
        let faults = self.faults.clone();
        if lossy && self.happens(faults.drop) {
            return;
        }
        if lossy && self.happens(faults.duplicate) {
            self.delay(Held::Arrived(from, copy.clone()));
        }
        if lossy && self.happens(faults.delay) {
            return self.delay(Held::Arrived(from, copy));
        }
        report(Event::Arrived { from, packet: &copy });
    }

    fn delay(&mut self, held: Held) {
        let polls = 1 + self.next() % self.faults.delay_polls.max(1);
        self.delayed.push((self.polls + polls, held));
    }

    /// Updates the state after an event of the rail, and reports the event unless it must be hidden.
    fn note(&mut self, event: Event<'_>, lossy: bool, report: &mut dyn FnMut(Event<'_>)) {
        match event {
            Event::Arrived { from, packet } => return self.arrive(from, packet, lossy, report),
            Event::Landed { .. } if lossy && self.happens(self.faults.drop) => return,
            Event::Sent { to, .. } => {
                self.link(to).inside = self.link(to).inside.saturating_sub(1);
            }
            Event::Lost { peer, why, mut unsent } => {
                let link = self.link(peer);
                unsent.append(&mut link.unsent);
                let why = link.killed.take().unwrap_or(why);
                self.forget(peer);
                return report(Event::Lost { peer, why, unsent });
            }
            _ => {}
        }
        report(event);
    }

    fn forget(&mut self, peer: PeerId) {
        self.links.retain(|link| link.peer != peer);
        self.delayed.retain(|(_, held)| held.peer() != peer);
    }

    /// Closes the links that have carried enough bytes, once the rail has sent their orders.
    fn kill(&mut self, rail: &mut impl Driver) {
        let Some(limit) = self.faults.kill_after else { return };
        let name = rail.name().to_string();
        let is_due = |link: &&mut LinkState| link.posted > limit && link.inside == 0 && link.killed.is_none();
        for link in self.links.iter_mut().filter(is_due) {
            // The rail reports the loss of the link; this layer reports it with this reason instead.
            link.killed = Some(format!("rail {name}: peer {} killed after {limit} B, as set", link.peer.0));
            rail.send(Departure::Order(Order::Close { to: link.peer }));
        }
    }
}

impl Layer for Fault {
    fn limits(&self, rail: &impl Driver) -> Limits {
        let limits = rail.limits();
        if limits.lossy || !self.faults.pretend_lossy {
            return limits;
        }
        // A lossy rail takes no pushed chunks and does not end orders early; remote accesses would bypass
        // the faults.
        let remote = RemoteAccess::None;
        Limits { lossy: true, push: 0, inject: false, remote, ..limits }
    }

    fn send(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        let ((to, _), (len, count), limit) =
            (addressee(&departure), size(&departure), self.faults.kill_after);
        let link = self.link(to);
        if count > 0 && limit.is_some_and(|limit| link.posted + len > limit) {
            let Departure::Order(order) = departure else { return Sent::Retry };
            link.posted += len;
            link.unsent.push(order);
            return Sent::Posted;
        }
        let sent = rail.send(departure);
        if sent != Sent::Retry {
            link.posted += len;
        }
        if sent == Sent::Posted {
            link.inside += count;
        }
        sent
    }

    fn poll(&mut self, rail: &mut impl Driver, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        self.polls += 1;
        let lossy = self.limits(rail).lossy;
        let looked = rail.poll(scope, &mut |event| self.note(event, lossy, report));
        while let Some(place) = self.delayed.iter().position(|(due, _)| *due <= self.polls) {
            self.delayed.swap_remove(place).1.report(report);
        }
        self.kill(rail);
        looked
    }
}
