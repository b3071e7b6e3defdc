//! Messages that stay with their sender until the receiver has copied them, as in the memory that processes
//! of one node share: nothing but word of them goes over the wire.

use super::carry::Cargo;
use super::link::Standing;
use super::port::Inbound;
use super::{Happening, Network};
use crate::key::Key;
use nmad_engine::memory::Segments;

/// How long a message is offered to a receiver that does not look.
const PATIENCE_NS: u64 = 2_000;

/// A message of which it is open whether its receiver copies it.
#[derive(Debug)]
pub(super) struct Offer {
    key: Key,
    number: u32,
    head: Vec<u8>,
    data: Segments,
}

impl Offer {
    /// Whose memory it is.
    pub(super) fn sender(&self) -> usize {
        self.key.me
    }
}

impl Network {
    /// Offers a message to its receiver; whether it did, since nothing is before it.
    pub fn offer(&mut self, key: Key, number: u32, head: &[u64], data: &Segments) -> bool {
        if !self.is_clear(key) || self.machine.bus.is_some() {
            return false;
        }
        let (id, head) = (self.next_flight, head.iter().flat_map(|word| word.to_ne_bytes()).collect());
        self.next_flight += 1;
        self.offers.insert(id, Offer { key, number, head, data: data.clone() });
        let model = self.model(key.fabric);
        let local = self.local_ns(key.me);
        self.agenda.enter(local + model.latency_ns() + PATIENCE_NS, Happening::Withdraw(id));
        if !self.side(key).cut {
            self.launch(local, key, Cargo::Offer(id));
        }
        true
    }

    /// An offer for its receiver: the head of the packet, and the data. None: it was withdrawn.
    pub fn offered(&self, id: u64) -> Option<(Vec<u8>, Segments)> {
        let offer = self.offers.get(&id)?;
        Some((offer.head.clone(), offer.data.clone()))
    }

    /// The receiver has copied what was offered, or declines it.
    pub fn end_offer(&mut self, id: u64, taken: bool) {
        let Some(Offer { key, number, head, data }) = self.offers.remove(&id) else { return };
        let Key { fabric, me, peer } = key;
        let (model, mut now) = (self.model(fabric), self.local_ns(peer));
        let mut inbound = Inbound::Declined { to: peer, number };
        if taken {
            let mut bytes = head;
            data.append_to(&mut bytes);
            self.take(peer, model.take(bytes.len() as u64, false));
            now = self.local_ns(peer);
            self.departed(now, key, &Cargo::Packet(bytes));
            inbound = Inbound::Sent { to: peer, number, packet: None };
        }
        let facts = [15, fabric as u64, me as u64, u64::from(taken)];
        self.trace.note(now, peer, &facts, || {
            let what = if taken { "is copied" } else { "is declined" };
            format!("net{fabric} <- h{me}  #{number} {what}")
        });
        self.agenda.enter(now + model.latency_ns(), Happening::Done(key, Box::new(inbound)));
    }

    /// The receiver has not looked.
    pub fn withdraw(&mut self, now: u64, id: u64) {
        let Some(Offer { key, number, .. }) = self.offers.remove(&id) else { return };
        let facts = [16, key.fabric as u64, key.peer as u64];
        self.trace.note(now, key.me, &facts, || {
            format!("net{} -> h{}  #{number} is withdrawn", key.fabric, key.peer)
        });
        if self.side(key).standing == Standing::Up {
            self.arrive(now, key.fabric, key.me, Inbound::Declined { to: key.peer, number });
        }
    }

    /// Nobody reads the memory of what this side offers any more.
    pub(super) fn end_offers(&mut self, key: Key) {
        self.offers.retain(|_, offer| offer.key != key);
    }
}
