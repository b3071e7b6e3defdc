//! The short way of a small message whose sender waits: nothing else is in the window, and only one rail is
//! left, so there is nothing to decide and nothing to remember.

use super::Engine;
use crate::clock::Instant;
use crate::collect::request::{Context, Envelope, Hints, Tag};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId};
use crate::transfer::driver::Order;
use alloc::vec::Vec;
use nmad_wire::{Eager, Header, flags};

impl Engine {
    /// Sends a message past the window, if [`Engine::send`] and the pump would put it alone into a packet of
    /// the only rail at once; `has_room` says whether that rail takes an order. The packet is to be posted
    /// on the rail, and the message has ended. None: nothing was done.
    #[inline]
    pub fn send_directly(
        &mut self,
        (to, context, tag): (PeerId, Context, Tag),
        data: &Segments,
        hints: Hints,
        now: Instant,
        has_room: impl FnOnce(RailId) -> bool,
    ) -> Option<(RailId, Order, Envelope)> {
        let peer = self.peers.get_mut(to.0 as usize)?.as_deref_mut()?;
        let rail = peer.alone?;
        let state = self.rails.get(rail.index())?;
        let len = data.len() as usize;
        let link = peer.link(rail)?;
        let Hints { synchronous, unordered, rail: wish, probe, .. } = hints;
        let plain = !synchronous && !unordered && wish.is_none() && probe.is_none();
        let short = len < link.in_place_min && len <= peer.eager_max;
        let fits = Header::LEN + Eager::MAX_LEN + len <= peer.packet_max;
        let empty = peer.has_nothing() && peer.promises.is_empty() && state.prepared.is_none();
        // A receipt needs a request to belong to.
        let plain = plain && self.receipts.is_none();
        let goes = plain && short && fits && empty && link.accepts(state.limits.depth) && has_room(rail);
        if !goes || !peer.credit.spend(len as u64) {
            return None;
        }
        let flow = peer.flows.of(context.0);
        let seq = flow.send_next;
        flow.send_next = seq.wrapping_add(1);
        let head = Eager {
            flags: flags::of(false, false, false),
            context: context.0,
            tag: tag.0,
            seq,
            len: len as u32,
            request: 0,
        };
        let mut packet = self.buffers.pop().unwrap_or_default();
        packet.in_place.clear();
        packet.bytes.clear();
        packet.bytes.extend_from_slice(&[0; Header::LEN]);
        head.encode(&mut packet.bytes);
        data.append_to(&mut packet.bytes);
        let order = self.depart(now, rail, to, packet, Vec::new(), 1);
        Some((rail, order, Envelope { peer: to, context, tag, len: len as u64, seq }))
    }
}
