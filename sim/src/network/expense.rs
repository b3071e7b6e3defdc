//! What a host's core spends on its rails: posts and arrivals, and the copies that they need.

use super::Network;
use super::carry::order_len;
use crate::model::{Load, Model, Posting, Taking};
use nmad_engine::transfer::driver::Order;
use nmad_wire::{Frame, Header, frames};

impl Network {
    /// The core of `host` gives an order to a rail; returns when its first byte can move.
    pub(super) fn post(&mut self, host: usize, model: &dyn Model, order: &Order, wire_ns: u64) -> u64 {
        let (staged, pieces) = match order {
            Order::Packet { packet, .. } => {
                let pieces = packet.in_place.iter().map(|(_, data)| data.count()).sum();
                // The header alone is no copy; the engine writes it.
                ((packet.bytes.len() - Header::LEN) as u64, pieces)
            }
            _ => (0, 0),
        };
        let is_packet = matches!(order, Order::Packet { .. });
        let load = Load { len: order_len(order), pieces, chunk: !is_packet };
        let Posting { core_ns, copied, by_core, setup_ns } = model.post(&load);
        let machine = self.machine;
        self.work(host, machine.packet_ns + machine.copy_ns(staged) + machine.copy_ns(copied));
        let begun = self.local_ns(host);
        self.work(host, core_ns);
        let done = self.local_ns(host);
        // What the core writes itself moves while it writes, and the last byte not before it is written.
        if by_core { begun.max(done.saturating_sub(wire_ns)) } else { done + setup_ns }
    }

    /// The core of `host` takes a packet from a rail, and the engine reads it.
    pub fn take_packet(&mut self, host: usize, taking: Taking, bytes: &[u8]) {
        self.take(host, taking);
        let machine = self.machine;
        if !machine.counts_messages() {
            return;
        }
        for frame in frames(bytes.get(Header::LEN..).unwrap_or_default()) {
            if let Ok(Frame::Eager(_, data) | Frame::Part(_, data)) = frame {
                self.work(host, machine.message_ns + machine.copy_ns(data.len() as u64));
            }
        }
    }

    /// The core of `host` takes something from a rail.
    pub fn take(&mut self, host: usize, taking: Taking) {
        let machine = self.machine;
        self.work(host, machine.packet_ns + taking.core_ns + machine.copy_ns(taking.copied));
    }
}
