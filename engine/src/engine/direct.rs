//! The short way of a small message: nothing else is in the window, and only one rail is left, so there is
//! nothing to decide, and on a reliable rail nothing to remember.

use super::Engine;
use super::peer::Peer;
use crate::clock::Instant;
use crate::collect::request::{Context, Envelope, Hints, Request, Tag};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId};
use crate::transfer::driver::Order;
use alloc::vec::Vec;
use nmad_wire::{Eager, Header, Kind, flags};

/// A message that may go past the window.
#[derive(Debug)]
pub(crate) struct Direct {
    /// The only rail that is left.
    pub(crate) rail: RailId,
    /// What [`crate::Engine::send`] would return the end of.
    pub(crate) envelope: Envelope,
    frame: Eager,
    /// Nothing has to be remembered of it, and nothing to be told with it.
    bare: bool,
}

/// Header and frame of a packet with one message, whose data follows.
pub(crate) type Head = [u8; Header::LEN + Eager::PLAIN_LEN];

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
        let rail = peer.alone?;
        let link = peer.link(rail)?;
        let plain = Hints { priority: hints.priority, ..Hints::default() } == hints;
        let short = len as usize <= peer.eager_max.min(peer.packet_max.saturating_sub(size_of::<Head>()));
        // A receipt needs a request to belong to.
        let goes = plain && short && self.receipts.is_none();
        if !goes || !peer.is_idle() || !peer.credit.has(len) || !link.is_up() {
            return None;
        }
        if self.rails[rail.index()].prepared.is_some() {
            return None;
        }
        let bare = !peer.keeps && link.tx.len() == 0 && link.rx.beyond() == 0 && !peer.credit.owes_limit();
        let seq = peer.flows.next_to_send(context.0);
        let envelope = Envelope { peer: to, context, tag, len, seq };
        let flags = flags::of(false, false, false);
        let frame = Eager { flags, context: context.0, tag: tag.0, seq, len: len as u32, request: 0 };
        Some(Direct { rail, envelope, frame, bare })
    }

    /// The bytes that go before the message's data, for a rail that takes it at once
    /// ([`crate::Driver::pass`]); none if more than the message has to be told or remembered.
    #[inline]
    pub(crate) fn head(&self, direct: &Direct) -> Option<Head> {
        let link = self.peer(direct.envelope.peer)?.link(direct.rail).filter(|_| direct.bare)?;
        let len = size_of::<Head>() as u32 + direct.frame.len;
        let header = Header { kind: Kind::Packet, len, number: link.tx.next_number(), ack: link.rx.below() };
        let mut head = [0; size_of::<Head>()];
        head[..Header::LEN].copy_from_slice(&header.encode());
        head[Header::LEN..].copy_from_slice(&direct.frame.encode_plain());
        Some(head)
    }

    /// The rail has taken the message, which has ended.
    #[inline]
    pub(crate) fn passed(&mut self, direct: &Direct) {
        let Some(peer) = self.spend_for(direct) else { return };
        let Some(link) = peer.link_mut(direct.rail) else { return };
        link.tx.skip();
        link.rx.acknowledged();
        let counters = &mut self.rails[direct.rail.index()].counters;
        counters.packets += 1;
        counters.entries += 1;
        counters.packet_bytes += size_of::<Head>() as u64 + direct.envelope.len;
    }

    /// A packet with the message, which has ended, to be posted on the rail now; none if that rail should
    /// rather take the data where it lies, or takes nothing now.
    #[inline]
    pub(crate) fn packet(&mut self, now: Instant, direct: &Direct, data: &Segments) -> Option<Order> {
        let depth = self.rails[direct.rail.index()].limits.depth;
        let link = self.peer(direct.envelope.peer)?.link(direct.rail)?;
        if data.len() as usize >= link.in_place_min || !link.accepts(depth) {
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

    /// A request for a message that has passed: it has ended.
    #[inline]
    pub fn ended(&mut self, envelope: Envelope) -> RequestId {
        let request = RequestId(self.requests.insert(Request::Ended(Ok(envelope))));
        self.untold += 1;
        self.ended.push_back(request);
        request
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
