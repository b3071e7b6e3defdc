//! A message that is sent in the call that submits it, from its plan to its result
//! ([`crate::engine::depart`]).

use crate::clock::Instant;
use crate::collect::request::{Context, Tag};
use crate::memory::Segments;
use crate::packet::{Key, PeerId, RailId, RegionId, RequestId};
use crate::protocol::{Plan, Protocol};
use crate::transfer::driver::Order;
use nmad_wire::{AloneHead, Eager, Header, Kind, Rts, flags};

/// Receiver, context and tag of a message.
pub type To = (PeerId, Context, Tag);

/// Result of submitting a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// The message was sent completely; its sequence number in its flow.
    Ended(u32),
    /// The message is in progress; its request.
    Request(RequestId),
}

/// A message that a rail has refused: it is still to be sent, and already has its sequence number in its
/// flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    pub(crate) protocol: Protocol,
    pub(crate) seq: u32,
}

impl Refused {
    /// Returns the protocol of the refused attempt.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }
}

/// A message that is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    pub(crate) plan: Plan,
    /// Sequence number in its flow, reserved from now on.
    pub(crate) seq: u32,
    pub(crate) number: u32,
    pub(crate) ack: u32,
    /// Request that the message becomes if the network takes only a part of it.
    pub(crate) request: RequestId,
    /// When it was planned, if that is measured; otherwise zero.
    pub(crate) began: Instant,
}

impl Leaving {
    /// Returns the rail.
    #[inline]
    pub fn rail(&self) -> RailId {
        self.plan.rail.unwrap_or(RailId(0))
    }

    /// Returns the protocol.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.plan.protocol
    }

    /// Makes the refused attempt after the rail did not accept it.
    #[inline]
    pub fn refused(&self) -> Refused {
        Refused { protocol: self.plan.protocol, seq: self.seq }
    }

    /// Returns the sequence number in its flow.
    #[inline]
    pub(crate) fn seq(&self) -> u32 {
        self.seq
    }

    /// Returns the sequence number on the link.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the bytes before the data of a message in one packet.
    #[inline(always)]
    pub(crate) fn head(&self, &(_, context, tag): &To, len: u64) -> AloneHead {
        let frame =
            Eager { flags: 0, context: context.0, tag: tag.0, seq: self.seq, len: len as u32, request: 0 };
        let (number, ack, len) = (self.number, self.ack, Eager::ALONE_LEN as u32 + len as u32);
        frame.alone_head(&Header { kind: Kind::Packet, len, number, ack })
    }

    /// Returns the packet, in words, with the request to send of a message that its receiver reads at this
    /// address.
    pub(crate) fn read(&self, &(_, context, tag): &To, len: u64, address: u64) -> [u64; 8] {
        let (seq, request) = (self.seq, self.request.0);
        let flags = flags::READ | flags::FIN;
        let (context, tag) = (context.0, tag.0);
        let rts = Rts { flags, context, tag, seq, len, request, region: 0, pushed: 0, address };
        rts.alone_to_read(self.number, self.ack)
    }

    /// Returns the packet with the request to send of a pushed message, and the chunk after it.
    pub(crate) fn pushed(&self, to: &To, data: &Segments) -> ([u8; Rts::ALONE_LEN], Order) {
        let &(peer, Context(context), Tag(tag)) = to;
        let (seq, len, request) = (self.seq, data.len(), self.request.0);
        let rts =
            Rts { flags: flags::PUSHED, context, tag, seq, len, request, region: 0, pushed: len, address: 0 };
        let chunk = Order::Chunk {
            to: peer,
            number: self.number.wrapping_add(1),
            ack: self.ack,
            region: RegionId(request),
            key: Key::PUSH,
            offset: 0,
            from: data.clone(),
        };
        (rts.alone(self.number, self.ack), chunk)
    }
}
