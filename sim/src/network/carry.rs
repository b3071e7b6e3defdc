//! The way of one order: posted, on the wire, at the port of its receiver, delivered. Here faults take,
//! repeat and delay.

use super::link::Standing;
use super::port::{ChunkHead, Inbound};
use super::{Happening, Network};
use crate::faults::Fate;
use crate::key::Key;
use crate::model::Model;
use nmad_engine::packet::Packet;
use nmad_engine::transfer::driver::{Order, Sent};
use nmad_wire::{Header, Kind, explain};

/// An order that was posted and has not left.
#[derive(Debug)]
pub struct Flight {
    pub(super) key: Key,
    order: Order,
    /// When the last byte is on the wire.
    pub(super) end: u64,
}

impl Flight {
    /// Bytes.
    pub(super) fn len(&self) -> u64 {
        order_len(&self.order)
    }

    pub(super) fn into_order(self) -> Order {
        self.order
    }
}

/// A cargo on a wire.
#[derive(Debug)]
pub struct Transit {
    key: Key,
    cargo: Cargo,
    /// What the sender has made of its bytes, where they may be damaged.
    sum: Option<u64>,
    /// How many times its link was opened again before it left.
    epoch: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Cargo {
    Packet(Vec<u8>),
    Chunk(ChunkHead, Vec<u8>),
}

impl Cargo {
    fn len(&self) -> u64 {
        match self {
            Cargo::Packet(bytes) => bytes.len() as u64,
            Cargo::Chunk(head, _) => head.len + nmad_wire::ChunkHeader::LEN as u64,
        }
    }

    /// The number on the link; notices have none.
    fn number(&self) -> Option<u32> {
        match self {
            Cargo::Packet(bytes) => {
                Header::decode(bytes).ok().filter(|h| h.kind != Kind::Notice).map(|header| header.number)
            }
            Cargo::Chunk(head, _) => Some(head.number),
        }
    }

    fn name(&self) -> String {
        self.number().map_or("notice".into(), |number| format!("#{number}"))
    }

    fn text(&self) -> String {
        match self {
            Cargo::Packet(bytes) => explain(bytes).to_string(),
            Cargo::Chunk(c, _) => {
                let (number, len, region) = (c.number, c.len, c.region.0);
                format!("chunk #{number} of {len} B to region {region:#x} at {}, ack {}", c.offset, c.ack)
            }
        }
    }

    /// What a driver adds to a datagram, so that the receiver finds damage: FNV-1a over all of it.
    fn sum(&self) -> u64 {
        let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        match self {
            Cargo::Packet(bytes) => bytes.iter().fold(0xcbf2_9ce4_8422_2325, add),
            Cargo::Chunk(head, bytes) => {
                let ChunkHead { number, ack, region, key, offset, len } = *head;
                let head = [u64::from(number), u64::from(ack), region.0, key, offset, len];
                let head =
                    head.iter().flat_map(|word| word.to_le_bytes()).fold(1, |sum, byte| add(sum, &byte));
                bytes.iter().fold(head, add)
            }
        }
    }

    /// Turns a bit over.
    fn damage(&mut self, at: u64) {
        let bytes = match self {
            Cargo::Packet(bytes) => bytes,
            Cargo::Chunk(head, bytes) if bytes.is_empty() => return head.number ^= 1,
            Cargo::Chunk(_, bytes) => bytes,
        };
        let bit = at % (8 * bytes.len() as u64);
        bytes[bit as usize / 8] ^= 1 << (bit % 8);
    }
}

impl Network {
    /// Orders that a port takes now.
    pub fn room(&self, fabric: usize, host: usize) -> usize {
        const PORT_DEPTH: usize = 256;
        let port = self.ports.get(self.place(fabric, host)).and_then(Option::as_ref);
        port.map_or(0, |port| PORT_DEPTH.saturating_sub(port.outstanding))
    }

    /// Gives a packet or chunk to the interface, at the expense of the host's core.
    pub fn send(&mut self, key: Key, order: Order) {
        let model = self.model(key.fabric);
        let limits = model.limits();
        let waiting = self.side(key).waiting.len();
        self.oracle.posted(key, &order, &limits, waiting);
        let wire_ns = model.wire_ns(order_len(&order));
        let way_ns = wire_ns * self.narrowness(key, self.local_ns(key.me));
        let ready = self.post(key.me, &*model, &order, wire_ns);
        if !self.side(key).takes() {
            return self.refuse(key, order);
        }
        let local = self.local_ns(key.me);
        let has_bus = self.machine.bus.is_some();
        self.port(key.fabric, key.me).outstanding += 1;
        // Whose bytes wait for a bus ends nobody knows when.
        let free = self.interface(key.fabric, key.me).tx_free;
        let begin = ready.max(free);
        // A way that is narrow holds up what follows on it, not what goes to others.
        let way_begin = begin.max(self.side(key).way_free);
        let end = if has_bus { u64::MAX } else { way_begin + way_ns };
        let id = self.next_flight;
        self.next_flight += 1;
        self.flights.insert(id, Flight { key, order, end });
        self.side(key).waiting.push_back(id);
        if has_bus {
            return self.queue(key.fabric, key.me, id, ready);
        }
        self.in_parts(key, way_begin, end);
        self.side(key).way_free = end;
        self.interface(key.fabric, key.me).tx_free = begin + wire_ns + model.gap_ns();
        let sent_at = local.max(end.saturating_sub(model.wire_ns(model.swallows())));
        self.agenda.enter(sent_at, Happening::Depart(id));
    }

    /// Whether something may leave within the call that brings it: nothing is before it.
    pub(super) fn is_clear(&mut self, key: Key) -> bool {
        let side = self.side(key);
        let clear = side.takes() && side.waiting.is_empty();
        clear && self.room(key.fabric, key.me) > 0
    }

    /// Has the core write a packet to the interface; whether it took it.
    pub fn inject(&mut self, key: Key, order: Order) -> bool {
        if !self.is_clear(key) || self.machine.bus.is_some() {
            return false;
        }
        let model = self.model(key.fabric);
        self.oracle.posted(key, &order, &model.limits(), 0);
        let wire_ns = model.wire_ns(order_len(&order));
        self.leave(key, &*model, order, wire_ns);
        true
    }

    /// Has a packet and the chunk behind it leave with one call.
    pub fn push(&mut self, key: Key, orders: [Order; 2]) -> Sent {
        if !self.is_clear(key) || self.model(key.fabric).limits().depth < orders.len() {
            return Sent::Retry;
        }
        orders.into_iter().for_each(|order| self.send(key, order));
        Sent::Posted
    }

    /// Something leaves while the core stands by.
    fn leave(&mut self, key: Key, model: &dyn Model, order: Order, wire_ns: u64) {
        let local = self.local_ns(key.me);
        let end = local.max(self.interface(key.fabric, key.me).tx_free) + wire_ns;
        let end = end.max(self.post(key.me, model, &order, wire_ns) + wire_ns);
        self.interface(key.fabric, key.me).tx_free = end + model.gap_ns();
        let (cargo, _) = load(order, key.peer, self.hollow);
        self.departed(local, key, &cargo);
        if self.side(key).cut {
            self.traffic.dropped += 1;
        } else {
            let free = self.side(key).way_free;
            self.launch(end.max(free), key, cargo);
        }
    }

    /// Has a packet leave within the call, as a system call does, if the interface swallows it; otherwise it
    /// waits like one that was posted.
    pub fn send_now(&mut self, key: Key, order: Order) -> Sent {
        let (model, local) = (self.model(key.fabric), self.local_ns(key.me));
        let limits = model.limits();
        let (takes, waiting) = (self.side(key).takes(), self.side(key).waiting.len());
        if !takes || waiting >= limits.depth || self.room(key.fabric, key.me) == 0 {
            return Sent::Retry;
        }
        let wire_ns = model.wire_ns(order_len(&order));
        let end = local.max(self.interface(key.fabric, key.me).tx_free) + wire_ns;
        let swallowed = end.saturating_sub(model.wire_ns(model.swallows())) <= local;
        if waiting > 0 || !swallowed || self.machine.bus.is_some() {
            self.send(key, order);
            return Sent::Posted;
        }
        self.oracle.posted(key, &order, &limits, waiting);
        self.leave(key, &*model, order, wire_ns);
        Sent::Done
    }

    /// The link is already gone, but the engine could not know: the order goes back by itself, behind the
    /// news of the loss, as the real drivers do it.
    fn refuse(&mut self, key: Key, order: Order) {
        let told = self.told(key);
        let inbox = &mut self.port(key.fabric, key.me).inbox;
        let is_lost = |inbound: &Inbound| matches!(inbound, Inbound::Lost { peer, .. } if *peer == key.peer);
        if let Some(place) = inbox.iter().rposition(is_lost) {
            let why = format!("net{}: there is no link to h{}", key.fabric, key.peer);
            return inbox.insert(place + 1, Inbound::Lost { peer: key.peer, why, unsent: vec![order] });
        }
        self.oracle.object(format!(
            "h{} posted an order for h{} on net{}, whose link is {told:?}",
            key.me, key.peer, key.fabric
        ));
    }

    /// An order leaves: the network reads its memory now and reports it to the sender.
    pub fn depart(&mut self, now: u64, id: u64) {
        let Some(flight) = self.flights.get(&id) else { return };
        let (key, end) = (flight.key, flight.end);
        let model = self.model(key.fabric);
        let dead = self.side(key).cut || self.doing[key.me].dead;
        if dead && model.swallows() == 0 && !model.limits().lossy && !self.doing[key.me].dead {
            return; // Stays with the interface until the loss is noticed.
        }
        let Some(flight) = self.flights.remove(&id) else { return };
        self.side(key).waiting.retain(|&other| other != id);
        self.port(key.fabric, key.me).outstanding -= 1;
        if self.doing[key.me].dead {
            return;
        }
        let (mut cargo, sent) = load(flight.order, key.peer, self.hollow);
        if let (true, Cargo::Chunk(_, bytes)) = (self.corrupts && id.is_multiple_of(7), &mut cargo) {
            bytes.last_mut().into_iter().for_each(|byte| *byte ^= 1);
        }
        self.departed(now, key, &cargo);
        match model.done_ns() {
            0 => self.arrive(now, key.fabric, key.me, sent),
            done_ns => {
                self.agenda.enter(now + done_ns, Happening::Done(key, Box::new(sent)));
            }
        }
        if dead {
            self.traffic.dropped += 1;
            return;
        }
        self.launch(end.max(now), key, cargo);
    }

    /// The interface says that an order has left, unless the link was lost meanwhile.
    pub fn done(&mut self, now: u64, key: Key, sent: Inbound) {
        if self.side(key).standing == Standing::Up {
            self.arrive(now, key.fabric, key.me, sent);
        }
    }

    pub(super) fn departed(&mut self, now: u64, key: Key, cargo: &Cargo) {
        self.keep_moment(key.me, now);
        let repeated = cargo.number().is_some_and(|number| self.oracle.departed(key, number));
        let traffic = &mut self.traffic;
        traffic.bytes += cargo.len();
        traffic.resent += u64::from(repeated);
        let kind = match cargo {
            Cargo::Packet(bytes) => {
                traffic.packets += 1;
                traffic.resent += self.oracle.frames(key, bytes);
                let seen = if self.hollow { 0 } else { bytes.len() };
                self.trace.bytes(&bytes[..seen]);
                10
            }
            Cargo::Chunk(head, _) => {
                traffic.chunks += 1;
                self.trace.bytes(&head.offset.to_le_bytes());
                11
            }
        };
        let facts = [
            kind,
            key.fabric as u64,
            key.peer as u64,
            cargo.number().map_or(u64::MAX, u64::from),
            cargo.len(),
        ];
        self.trace.note(now, key.me, &facts, || {
            let again = if repeated { " (again)" } else { "" };
            format!("net{} -> h{}{again}  {}", key.fabric, key.peer, cargo.text())
        });
    }

    /// Puts a cargo on the wire, once, twice or not at all.
    pub(super) fn launch(&mut self, end: u64, key: Key, cargo: Cargo) {
        let fabric = &self.fabrics[key.fabric];
        let (model, lossy) = (fabric.model.clone(), fabric.model.limits().lossy);
        let fate = fabric.faults.fate(lossy, &mut self.rng);
        if fate != Fate::default() {
            let facts = [12, fate.copies, fate.late_ns, fate.damage.unwrap_or(0)];
            self.trace.note(end, key.me, &facts, || {
                format!("net{} -> h{}  {} {fate}", key.fabric, key.peer, cargo.name())
            });
        }
        if fate.copies == 0 {
            self.traffic.dropped += 1;
        }
        let sum = fate.damage.map(|_| cargo.sum());
        let latency_ns = model.latency_ns() + self.lateness_ns(key, end);
        // The last one is the cargo itself: one copy less of a long message.
        for (copy, mut cargo) in (0..).zip(std::iter::repeat_n(cargo, fate.copies as usize)) {
            let jitter = self.rng.below(model.jitter_ns() + 1);
            let late = fate.late_ns + copy * (model.latency_ns() + fate.late_ns / 2);
            let side = self.side(key);
            let mut at = (end + latency_ns + jitter + late).max(side.not_before);
            if !lossy {
                at = at.max(side.last_reach + 1);
            }
            side.last_reach = side.last_reach.max(at);
            let epoch = side.epoch;
            match self.blocked_until(key, at).or(self.blocked_until(key, end)) {
                Some(_) if lossy => {
                    self.traffic.dropped += 1;
                    continue;
                }
                // A stream sends it again when the way is free, if it is still there.
                Some(until) => {
                    at = at.max(until + model.latency_ns());
                    let side = self.side(key);
                    side.last_reach = side.last_reach.max(at);
                    at = side.last_reach;
                }
                None => {}
            }
            self.in_transit += 1;
            if let Some(at) = fate.damage.filter(|_| copy == 0) {
                cargo.damage(at);
            }
            self.agenda.enter(at, Happening::Reach(Box::new(Transit { key, cargo, sum, epoch })));
        }
    }

    /// A cargo reaches the receiver's port, which takes one after the other.
    pub fn reach(&mut self, now: u64, transit: Box<Transit>) {
        let Key { fabric, peer, .. } = transit.key;
        if self.side(transit.key).cut || self.side(transit.key).epoch != transit.epoch {
            return self.lose();
        }
        let wire = self.fabrics[fabric].model.wire_ns(transit.cargo.len());
        let queue_ns = self.fabrics[fabric].faults.queue_ns;
        let waits_ns = self.interface(fabric, peer).rx_free.saturating_sub(now);
        if queue_ns > 0 && waits_ns > queue_ns && self.fabrics[fabric].model.limits().lossy {
            return self.lose();
        }
        let port = self.interface(fabric, peer);
        port.rx_free = now.max(port.rx_free + wire);
        let at = port.rx_free;
        self.agenda.enter(at, Happening::Deliver(transit));
    }

    /// A cargo is at the disposal of its receiver.
    pub fn deliver(&mut self, now: u64, transit: Box<Transit>) {
        let key = transit.key;
        let latency = self.fabrics[key.fabric].model.latency_ns();
        if self.side(key).epoch != transit.epoch {
            return self.lose();
        }
        let standing = self.side(key.reverse()).standing;
        match standing {
            _ if self.doing[key.peer].dead => return self.lose(),
            Standing::Up => {}
            Standing::Opening if !self.side(key.reverse()).asks_again => {
                self.agenda.enter(now + latency, Happening::Deliver(transit));
                return;
            }
            _ => return self.lose(),
        }
        let cargo = &transit.cargo;
        if !self.unchecked && transit.sum.is_some_and(|sum| sum != cargo.sum()) {
            self.trace.note(now, key.peer, &[14, key.fabric as u64, key.me as u64], || {
                format!("net{} <- h{}  {} is damaged, dropped", key.fabric, key.me, cargo.name())
            });
            return self.lose();
        }
        self.in_transit -= 1;
        self.keep_moment(key.peer, now);
        let facts = [13, key.fabric as u64, key.me as u64, cargo.len()];
        self.trace
            .note(now, key.peer, &facts, || format!("net{} <- h{}  {}", key.fabric, key.me, cargo.name()));
        let from = key.me;
        let inbound = match transit.cargo {
            Cargo::Packet(bytes) => Inbound::Packet { from, bytes },
            Cargo::Chunk(head, bytes) => {
                self.port(key.fabric, key.peer).landed.push((now, head.len));
                let remote = self.fabrics[key.fabric].model.remote_write();
                let written = remote.then(|| self.write_chunk(key.fabric, key.peer, from, &head, &bytes));
                Inbound::Chunk { from, head, bytes, written }
            }
        };
        self.arrive(now, key.fabric, key.peer, inbound);
    }

    fn lose(&mut self) {
        self.in_transit -= 1;
        self.traffic.dropped += 1;
    }
}

pub(super) fn order_len(order: &Order) -> u64 {
    match order {
        Order::Packet { packet, .. } => packet.len() as u64,
        Order::Chunk { from, .. } => from.len() + nmad_wire::ChunkHeader::LEN as u64,
        Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => 0,
    }
}

/// Reads the memory of an order; returns the cargo and the report to its sender. `hollow`: the bytes of
/// chunks are left where they are.
fn load(order: Order, to: usize, hollow: bool) -> (Cargo, Inbound) {
    match order {
        Order::Chunk { number, ack, region, key, offset, from, .. } => {
            let head = ChunkHead { number, ack, region, key: key.0, offset, len: from.len() };
            let mut bytes = Vec::new();
            if !hollow {
                bytes.reserve_exact(from.len() as usize);
                from.append_to(&mut bytes);
            }
            (Cargo::Chunk(head, bytes), Inbound::Sent { to, number, packet: None })
        }
        Order::Packet { number, packet, .. } => {
            (Cargo::Packet(flatten(&packet)), Inbound::Sent { to, number, packet: Some(packet) })
        }
        Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => {
            unreachable!("links are opened and closed at once, never queued")
        }
    }
}

fn flatten(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(packet.len());
    packet.parts(|part| bytes.extend_from_slice(part));
    bytes
}
