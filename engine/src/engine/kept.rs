//! What a lossy rail needs beside the short ways: what leaves at once is remembered while it is under way,
//! and timers are looked at when one of them may be due.

use super::Engine;
use super::plain::Expected;
use crate::clock::Instant;
use crate::memory::Segments;
use crate::packet::Packet;
use crate::transfer::link::Link;
use crate::transfer::retention::Cargo;
use alloc::vec::Vec;

/// Remembers a packet that has left: what went before the data, and the data.
#[inline]
pub(super) fn keep(link: &mut Link, left_at: Instant, mut packet: Packet, (head, data): (&[u64], &Segments)) {
    packet.in_place.clear();
    packet.bytes.clear();
    data.append_behind(head, &mut packet.bytes);
    let (number, len) = (link.tx.next_number(), packet.len() as u64);
    link.hold(left_at, Cargo::Packet(None), len, Vec::new());
    link.tx.sent(number, Some(packet), true);
    link.stir();
}

impl Engine {
    /// Takes note of an acknowledgement that came with a message for which somebody waited: he had it first.
    #[inline]
    pub(super) fn hear(&mut self) {
        if self.unheard.is_some() {
            self.take_note();
        }
    }

    #[inline(never)]
    fn take_note(&mut self) {
        if let Some((came_at, rail, from, ack)) = self.unheard.take() {
            self.on_ack(came_at, rail, from, ack, 0);
        }
    }

    /// Whether somebody expects a message that has come, and nothing waits for a rail.
    #[inline]
    pub(crate) fn is_met(&self) -> bool {
        matches!(self.expected, Expected::Met(_)) && self.ready.is_empty()
    }

    /// Something happens: timers are to be looked at anew.
    #[inline]
    pub(super) fn stir(&mut self) {
        self.rests_until = Instant::default();
    }

    /// Whether no lossy link needs anything now, nor has anything to be sent; until when, is remembered.
    pub(super) fn timers_rest(&mut self, now: Instant) -> bool {
        self.hear();
        if !self.ready.is_empty() {
            return false;
        }
        let mut until = Instant::from_ns(u64::MAX);
        for &(peer, rail) in &self.timed {
            let link = self.peer(peer).and_then(|peer| peer.link(rail)).filter(|link| link.is_up());
            let Some(link) = link else { continue };
            let Some(rests) = link.rests_until(now) else { return false };
            until = until.min(rests);
        }
        self.rests_until = until;
        true
    }
}
