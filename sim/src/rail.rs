//! The driver of simulated rails: the engine's interface on one side, a port of the network on the other.

use crate::model::Model;
use crate::network::{Inbound, Key, Shared, Standing, lock};
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key as RegionKey, Packet, PeerId, RegionId};
use nmad_engine::transfer::access::{Access, Act, Came};
use nmad_engine::transfer::driver::{Departure, Driver, Event, How, Limits, Order, Scope, Sent};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One simulated interface.
#[derive(Debug)]
pub struct SimRail {
    network: Shared,
    model: Arc<dyn Model>,
    name: String,
    fabric: usize,
    host: usize,
    posted: Vec<Order>,
    /// By sender: a pushed chunk whose receive region is not known, and what has arrived behind it.
    held: BTreeMap<usize, VecDeque<Inbound>>,
}

impl SimRail {
    /// The port of `host` on `fabric`.
    pub fn new(network: &Shared, fabric: usize, host: usize) -> SimRail {
        let model = lock(network).model(fabric);
        let name = format!("{}/net{fabric}", model.name());
        let (posted, held) = (Vec::new(), BTreeMap::new());
        SimRail { network: network.clone(), model, name, fabric, host, posted, held }
    }

    fn key(&self, peer: PeerId) -> Key {
        Key { fabric: self.fabric, me: self.host, peer: peer.0 as usize }
    }
}

impl Driver for SimRail {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> Limits {
        let returns = lock(&self.network).returns();
        Limits { looks: true, returns, ..self.model.limits() }
    }

    fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> RegionKey {
        let mut network = lock(&self.network);
        network.work(self.host, self.model.open_ns(into.len()));
        let key = network.open((self.fabric, self.host), region, from, into);
        if key.is_none() {
            let text = format!("h{} opened region {:#x} twice on net{}", self.host, region.0, self.fabric);
            network.oracle.object(text);
        }
        RegionKey(key.unwrap_or(0))
    }

    fn close(&mut self, region: RegionId) {
        lock(&self.network).close(self.fabric, self.host, region);
    }

    fn access(&mut self, access: Access) -> Option<Came> {
        let Access { to, act: Act::Get, at, here, .. } = access else { return Some(Came::Undone) };
        Some(lock(&self.network).read(self.key(to), at, &here))
    }

    fn room(&self) -> usize {
        lock(&self.network).room(self.fabric, self.host).saturating_sub(self.posted.len())
    }

    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { to, number, head, data, how: How::Send } if self.posted.is_empty() => {
                let mut packet = Packet::default();
                data.append_behind(head, &mut packet.bytes);
                lock(&self.network).send_now(self.key(to), Order::Packet { to, number, packet })
            }
            Departure::Message { to, number, head, data, how: How::Inject } if self.posted.is_empty() => {
                let mut packet = Packet::default();
                data.append_behind(head, &mut packet.bytes);
                lock(&self.network).inject(self.key(to), Order::Packet { to, number, packet }).into()
            }
            Departure::Pushed { packet, chunk: chunk @ Order::Chunk { to, number, .. } }
                if self.posted.is_empty() =>
            {
                let packet = Packet { bytes: packet.to_vec(), in_place: Vec::new() };
                let number = number.wrapping_sub(1);
                let orders = [Order::Packet { to, number, packet }, chunk];
                lock(&self.network).push(self.key(to), orders)
            }
            Departure::Message { .. } | Departure::Pushed { .. } => Sent::Retry,
            Departure::Order(order) => {
                self.order(order);
                Sent::Posted
            }
        }
    }

    fn flush(&mut self) {
        for order in std::mem::take(&mut self.posted) {
            if let Order::Packet { to, .. } | Order::Chunk { to, .. } = order {
                lock(&self.network).send(self.key(to), order);
            }
        }
    }

    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if let Scope::Peer(from) = scope {
            return self.look_for(from, report);
        }
        let count = {
            let mut network = lock(&self.network);
            network.work(self.host, self.model.look_ns());
            network.inbound(self.fabric, self.host)
        };
        for _ in 0..count {
            // The lock is not held while the engine handles the event: it may ask for the time.
            let next = lock(&self.network).next_inbound(self.fabric, self.host);
            if let Some(inbound) = next.and_then(|inbound| self.hold(inbound, report)) {
                self.report(inbound, report);
            }
        }
        true
    }
}

impl SimRail {
    fn order(&mut self, order: Order) {
        match order {
            Order::Connect { to } => lock(&self.network).connect(self.key(to)),
            Order::Close { to } => {
                self.flush();
                lock(&self.network).close_link(self.key(to));
            }
            Order::Accept { from, region } => {
                if let Some(held) = self.held.remove(&(from.0 as usize)) {
                    lock(&self.network).release(self.fabric, self.host, region, held);
                }
            }
            order => self.posted.push(order),
        }
    }

    /// The next packet, if it is of this peer.
    fn look_for(&mut self, from: PeerId, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let mut network = lock(&self.network);
        if network.inbound(self.fabric, self.host) == 0 {
            return true;
        }
        let peer = from.0 as usize;
        let next = network.next_packet(self.fabric, self.host, peer);
        let Some(bytes) = next.filter(|_| !self.held.contains_key(&peer)) else { return false };
        let taking = self.model.take(bytes.len() as u64, false);
        network.next_inbound(self.fabric, self.host);
        network.take_packet(self.host, taking, &bytes);
        drop(network);
        report(Event::Arrived { from, packet: &bytes });
        true
    }

    /// Keeps back a pushed chunk and all that its sender has sent behind it.
    fn hold(&mut self, inbound: Inbound, report: &mut dyn FnMut(Event<'_>)) -> Option<Inbound> {
        let from = match &inbound {
            Inbound::Packet { from, .. } | Inbound::Chunk { from, .. } => *from,
            Inbound::Lost { peer, .. } => {
                self.held.remove(peer);
                return Some(inbound);
            }
            Inbound::Up { .. } | Inbound::Sent { .. } => return Some(inbound),
            Inbound::Carrier { .. } | Inbound::Moved { .. } => return Some(inbound),
        };
        if let Some(held) = self.held.get_mut(&from) {
            held.push_back(inbound);
            return None;
        }
        match &inbound {
            Inbound::Chunk { head, .. } if head.key == RegionKey::PUSH.0 => {
                let (request, len) = (head.region.0, head.len);
                report(Event::Pushed { from: PeerId(from as u32), request, len });
                self.held.insert(from, VecDeque::from([inbound]));
                None
            }
            _ => Some(inbound),
        }
    }

    fn report(&self, inbound: Inbound, report: &mut dyn FnMut(Event<'_>)) {
        match inbound {
            Inbound::Up { peer, remote } => {
                self.tell(peer, Standing::Up);
                report(Event::Up { peer: PeerId(peer as u32), remote });
            }
            Inbound::Packet { from, bytes } => {
                let taking = self.model.take(bytes.len() as u64, false);
                lock(&self.network).take_packet(self.host, taking, &bytes);
                report(Event::Arrived { from: PeerId(from as u32), packet: &bytes });
            }
            Inbound::Chunk { from, head, written, .. } => {
                let taking = self.model.take(head.len, true);
                lock(&self.network).take(self.host, taking);
                report(Event::Landed {
                    from: PeerId(from as u32),
                    number: head.number,
                    ack: head.ack,
                    region: head.region,
                    offset: head.offset,
                    len: head.len,
                    kept: written.unwrap_or(false),
                });
            }
            Inbound::Sent { to, number, packet } => {
                report(Event::Sent { to: PeerId(to as u32), number, packet });
            }
            Inbound::Carrier { peer, lost } => {
                report(Event::Carrier { peer: PeerId(peer as u32), lost });
            }
            Inbound::Moved { from } => report(Event::Moved { peer: PeerId(from as u32) }),
            Inbound::Lost { peer, why, unsent } => {
                self.tell(peer, Standing::Gone);
                report(Event::Lost { peer: PeerId(peer as u32), why, unsent });
            }
        }
    }

    fn tell(&self, peer: usize, standing: Standing) {
        lock(&self.network).tell(self.key(PeerId(peer as u32)), standing);
    }
}
