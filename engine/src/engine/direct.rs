//! The short way of a small message: nothing else is in the window, and only one rail is left, so there is
//! nothing to decide, and on a reliable rail nothing to remember.

use super::Engine;
use super::lane::{Lane, alone_head};
use super::peer::Peer;
use crate::clock::Instant;
use crate::collect::request::{Context, Envelope, Hints, Request, Tag};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId};
use crate::transfer::driver::Order;
use alloc::vec::Vec;
use nmad_wire::{Eager, Header, flags};

/// A message that may go past the window.
#[derive(Debug)]
pub(crate) struct Direct {
    /// The only rail that is left.
    pub(crate) rail: RailId,
    /// What [`crate::Engine::send`] would return the end of.
    pub(crate) envelope: Envelope,
    frame: Eager,
}

impl Engine {
    /// What a message needs to go past the window, if [`Engine::send`] and the pump would put it alone into a
    /// packet of the only rail. Nothing is done yet.
    #[inline]
    pub(crate) fn direct(
        &self,
        (to, context, tag): (PeerId, Context, Tag),
        len: u64,
        hints: Hints,
    ) -> Option<Direct> {
        let peer = self.peer(to)?;
        let Lane { rail, below, .. } = peer.lane?;
        // A receipt needs a request to belong to.
        if len >= below || !peer.passes(len, hints) || self.receipts.is_some() {
            return None;
        }
        if self.rails[rail.index()].prepared.is_some() {
            return None;
        }
        let seq = peer.flows.next_to_send(context.0);
        let envelope = Envelope { peer: to, context, tag, len, seq };
        let flags = flags::of(false, false, false);
        let frame = Eager { flags, context: context.0, tag: tag.0, seq, len: len as u32, request: 0 };
        Some(Direct { rail, envelope, frame })
    }

    /// Lets a rail take a message at once, if nothing more than it has to be told or remembered: `carry` is
    /// given the bytes that go before its data ([`crate::Driver::pass`]). The message has ended then, and
    /// this is its number in its flow. None: the rail did not take it, or was not asked.
    ///
    /// Nothing longer than a register is answered. Memory that is read in other pieces than it was written
    /// in has to reach the cache first, behind the packet, whose line is still with another core.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        (to, context, tag): (PeerId, Context, Tag),
        len: u64,
        hints: Hints,
        carry: impl FnOnce(RailId, &[u64]) -> bool,
    ) -> Option<u32> {
        let Engine { peers, rails, receipts, .. } = self;
        let peer = peers.get_mut(to.0 as usize)?.as_deref_mut()?;
        let Lane { rail, place, below } = peer.lane?;
        if len >= below || !peer.passes(len, hints) || receipts.is_some() {
            return None;
        }
        // What has to be kept goes the other way, and what has to be told with it too.
        if peer.keeps || peer.credit.owes_limit() {
            return None;
        }
        let (link, at) = (&mut peer.links[place], &mut rails[rail.index()]);
        if link.tx.len() > 0 || link.rx.beyond() > 0 || at.prepared.is_some() {
            return None;
        }
        let flow = peer.flows.of(context.0);
        let seq = flow.send_next;
        if !carry(rail, &alone_head(link, (context, tag), seq, len)) {
            return None;
        }
        flow.send_next = seq.wrapping_add(1);
        peer.credit.spend(len);
        link.tx.skip();
        link.rx.acknowledged();
        at.counters.left(1, Eager::ALONE_LEN as u64 + len);
        Some(seq)
    }

    /// A packet with the message, which has ended, to be posted on the rail now; none if that rail should
    /// rather take the data where it lies, or takes nothing now.
    #[inline]
    pub(crate) fn packet(&mut self, now: Instant, direct: &Direct, data: &Segments) -> Option<Order> {
        let depth = self.rails[direct.rail.index()].limits.depth;
        let peer = self.peer(direct.envelope.peer)?;
        let link = peer.link(direct.rail)?;
        // What is kept is copied anyway.
        let stays = !peer.keeps && data.len() as usize >= link.in_place_min;
        if stays || !link.accepts(depth) {
            return None;
        }
        self.spend_for(direct)?;
        let mut packet = self.buffers.pop().unwrap_or_default();
        packet.in_place.clear();
        packet.bytes.clear();
        packet.bytes.extend_from_slice(&[0; Header::LEN]);
        direct.frame.encode(&mut packet.bytes);
        data.append_to(&mut packet.bytes);
        Some(self.depart(now, direct.rail, direct.envelope.peer, packet, Vec::new(), 1))
    }

    /// A request for a message that has passed. It has ended, and since nobody can wait for it yet,
    /// [`Engine::next_ended`] does not tell so.
    #[inline]
    pub fn ended(&mut self, envelope: Envelope) -> RequestId {
        self.untold += 1;
        RequestId(self.requests.insert(Request::Ended(Ok(envelope))))
    }

    #[inline]
    fn spend_for(&mut self, direct: &Direct) -> Option<&mut Peer> {
        let Envelope { peer, context, len, .. } = direct.envelope;
        let peer = self.peers.get_mut(peer.0 as usize)?.as_deref_mut()?;
        let flow = peer.flows.of(context.0);
        flow.send_next = flow.send_next.wrapping_add(1);
        peer.credit.spend(len);
        Some(peer)
    }
}

impl Peer {
    /// Whether a message with these hints, short enough for the lane, would leave alone and right away.
    #[inline]
    pub(super) fn passes(&self, len: u64, hints: Hints) -> bool {
        hints.are_plain() && self.is_idle() && self.credit.has(len)
    }
}
