//! A message that leaves in the call that submits it, from its plan to what became of it
//! ([`crate::engine::depart`]).

use crate::clock::Instant;
use crate::collect::request::{Context, Tag};
use crate::memory::Segments;
use crate::packet::{Key, PeerId, RailId, RegionId, RequestId};
use crate::protocol::{Plan, Protocol};
use crate::transfer::driver::Order;
use nmad_wire::{AloneHead, Eager, Header, Kind, Rts, flags};

/// To whom a message goes, and its names.
pub type To = (PeerId, Context, Tag);

/// What became of a message that was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// It has left and ended; this is its number in its flow.
    Ended(u32),
    /// It is under way; this is its request.
    Request(RequestId),
}

/// What a rail has refused: the message is still to be sent, and has its number in its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    pub(crate) protocol: Protocol,
    pub(crate) seq: u32,
    /// Its request, if it has one already.
    pub(crate) request: Option<RequestId>,
}

impl Refused {
    /// How the message should have left.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }
}

/// A message that is about to leave.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    pub(crate) plan: Plan,
    /// Its number in its flow, which is its own from now on.
    pub(crate) seq: u32,
    pub(crate) number: u32,
    pub(crate) ack: u32,
    /// The request that it becomes if the network takes but a part.
    pub(crate) request: RequestId,
    /// When it was planned, where that is measured; zero elsewhere.
    pub(crate) began: Instant,
}

impl Leaving {
    /// The rail.
    #[inline]
    pub fn rail(&self) -> RailId {
        self.plan.rail.unwrap_or(RailId(0))
    }

    /// The protocol.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.plan.protocol
    }

    /// The rail does not take it.
    #[inline]
    pub fn refused(&self) -> Refused {
        Refused { protocol: self.plan.protocol, seq: self.seq, request: None }
    }

    /// Its number in its flow.
    #[inline]
    pub(crate) fn seq(&self) -> u32 {
        self.seq
    }

    /// Its number on the link.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The bytes before the data of a message in one packet.
    #[inline(always)]
    pub(crate) fn head(&self, &(_, context, tag): &To, len: u64) -> AloneHead {
        let frame =
            Eager { flags: 0, context: context.0, tag: tag.0, seq: self.seq, len: len as u32, request: 0 };
        let (number, ack, len) = (self.number, self.ack, Eager::ALONE_LEN as u32 + len as u32);
        frame.alone_head(&Header { kind: Kind::Packet, len, number, ack })
    }

    /// The packet with the request to send of a message that its receiver reads from this address, in words.
    pub(crate) fn read(&self, &(_, context, tag): &To, len: u64, address: u64) -> [u64; 8] {
        let (seq, request) = (self.seq, self.request.0);
        let flags = flags::READ | flags::FIN;
        let (context, tag) = (context.0, tag.0);
        let rts = Rts { flags, context, tag, seq, len, request, region: 0, pushed: 0, address };
        rts.alone_to_read(self.number, self.ack)
    }

    /// The packet with the request to send of a message that is pushed, and the chunk behind it.
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
