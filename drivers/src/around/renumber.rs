//! A rail of another job than that of its process: its peers have other ranks there.

use nmad_engine::InPlace;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};
use nmad_engine::transfer::access::{Access, Came};
use nmad_engine::transfer::driver::{
    Departure, Driver, Event, Interest, Limits, Order, Scope, Sent, Statistics,
};

/// A rail whose peers the engine knows by other numbers.
pub struct Renumbered {
    rail: Box<dyn Driver>,
    /// The engine's number of each rank of the rail's job.
    peers: Vec<PeerId>,
    /// The engine's numbers with the ranks in the rail's job, sorted by number.
    ranks: Vec<(PeerId, PeerId)>,
}

impl Renumbered {
    /// Wraps `rail`; `peers` has the engine's number of each rank.
    pub fn new(rail: Box<dyn Driver>, peers: Vec<PeerId>) -> Renumbered {
        let mut ranks: Vec<_> = peers.iter().copied().zip((0..).map(PeerId)).collect();
        ranks.sort_unstable_by_key(|(peer, _)| peer.0);
        Renumbered { rail, peers, ranks }
    }

    fn rank(&self, peer: PeerId) -> PeerId {
        let place = self.ranks.binary_search_by_key(&peer.0, |(each, _)| each.0);
        place.map_or(PeerId(u32::MAX), |place| self.ranks[place].1)
    }
}

fn numbered(peers: &[PeerId], rank: PeerId) -> PeerId {
    peers.get(rank.0 as usize).copied().unwrap_or(PeerId(u32::MAX))
}

/// Returns the order with another number for its peer.
fn with_peer(mut order: Order, number: impl FnOnce(PeerId) -> PeerId) -> Order {
    let (Order::Connect { to: peer }
    | Order::Packet { to: peer, .. }
    | Order::Chunk { to: peer, .. }
    | Order::Close { to: peer }
    | Order::Accept { from: peer, .. }) = &mut order;
    *peer = number(*peer);
    order
}

fn event<'a>(peers: &[PeerId], mut event: Event<'a>) -> Event<'a> {
    match &mut event {
        Event::Up { peer, .. }
        | Event::Moved { peer }
        | Event::Carrier { peer, .. }
        | Event::Buffers { peer, .. } => *peer = numbered(peers, *peer),
        Event::Arrived { from, .. } | Event::Pushed { from, .. } | Event::Landed { from, .. } => {
            *from = numbered(peers, *from)
        }
        Event::Sent { to, .. } | Event::Accessed { to, .. } => {
            *to = numbered(peers, *to);
        }
        Event::Lost { peer, why, unsent } => {
            let rank = std::mem::replace(peer, numbered(peers, *peer));
            // The text contains the rank; replace it by the number that other messages use.
            *why = why.replacen(&format!("peer {}", rank.0), &format!("peer {}", peer.0), 1);
            let orders = std::mem::take(unsent);
            unsent.extend(orders.into_iter().map(|order| with_peer(order, |rank| numbered(peers, rank))));
        }
    }
    event
}

impl Driver for Renumbered {
    fn name(&self) -> &str {
        self.rail.name()
    }

    fn limits(&self) -> Limits {
        self.rail.limits()
    }

    fn address(&self) -> String {
        self.rail.address()
    }

    fn know(&mut self, peer: PeerId, rail: u8, address: &str) -> bool {
        let rank = self.rank(peer);
        self.rail.know(rank, rail, address)
    }

    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        let from = self.rank(from);
        self.rail.open(region, from, into)
    }

    fn close(&mut self, region: RegionId) {
        self.rail.close(region);
    }

    fn expose(&mut self, memory: Segments) -> Option<Key> {
        self.rail.expose(memory)
    }

    fn conceal(&mut self, key: Key) {
        self.rail.conceal(key);
    }

    fn access(&mut self, access: Access) -> Option<Came> {
        let to = self.rank(access.to);
        self.rail.access(Access { to, ..access })
    }

    fn room(&self) -> usize {
        self.rail.room()
    }

    fn send(&mut self, departure: Departure<'_>) -> Sent {
        let departure = match departure {
            Departure::Order(order) => Departure::Order(with_peer(order, |peer| self.rank(peer))),
            Departure::Message { to, number, head, data, how } => {
                Departure::Message { to: self.rank(to), number, head, data, how }
            }
            Departure::Pushed { packet, chunk } => {
                Departure::Pushed { packet, chunk: with_peer(chunk, |peer| self.rank(peer)) }
            }
        };
        self.rail.send(departure)
    }

    fn flush(&mut self) {
        self.rail.flush();
    }

    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let scope = match scope {
            Scope::All => Scope::All,
            Scope::Peer(peer) => Scope::Peer(self.rank(peer)),
        };
        let peers = &self.peers;
        self.rail.poll(scope, &mut |happened| report(event(peers, happened)))
    }

    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        self.rail.wakeup(interest)
    }

    fn leave_in_place(&mut self, from: Option<InPlace>) {
        self.rail.leave_in_place(from);
    }

    fn statistics(&self) -> Statistics {
        self.rail.statistics()
    }

    fn cipher(&self, peer: Option<PeerId>) -> Option<&'static str> {
        self.rail.cipher(peer.map(|peer| self.rank(peer)))
    }
}
