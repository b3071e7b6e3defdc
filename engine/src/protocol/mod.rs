//! The protocols: how messages are transferred. A protocol is to a message what an algorithm is to a
//! collective operation.
//!
//! Each protocol has a file with its rules (when it fits, its predicted cost, the sender's first step), the
//! states of both sides, the frames that change them, and the handling of a lost link or peer. [`table`]
//! lists the rules, and [`plan`] chooses the cheapest protocol that fits.
//!
//! | protocol | states of the sender | states of the receiver |
//! |---|---|---|
//! | inject, eager ([`eager`]) | [`eager::EagerSend`] | none: the message is matched or kept |
//! | parts, parallel ([`parts`], [`parallel`]) | one [`eager::EagerSend`] for all parts | [`parts::Parts`] |
//! | push ([`push`]) | `Ahead` of [`rendezvous::SendState`] | [`push::Push`], a receive region |
//! | read ([`read`]) | `Readable` as above | [`read::Reading`] |
//! | rendezvous ([`rendezvous`]) | `Asked`, `Granted`, `Landed`, as above | a receive region ([`regions`]) |
//! | blocks with the request to send ([`blocks`]) | of the rest, as above | of the rest, as above |
//! | rtr ([`rtr`]) | as above, from `Held` on | a receive region without a message yet |
//! | access ([`access`]) | [`access::OneSided`] | none |
//!
//! [`keep`] lets the memory of a send go that its program has cancelled, and [`early`] that of a blocking
//! send whose receiver is late.

pub(crate) mod access;
pub(crate) mod blocks;
mod bodies;
pub(crate) mod carried;
pub(crate) mod eager;
pub(crate) mod early;
pub(crate) mod keep;
pub(crate) mod leaving;
pub(crate) mod parallel;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod push;
pub(crate) mod read;
pub(crate) mod regions;
pub(crate) mod rendezvous;
pub(crate) mod rtr;
pub(crate) mod rules;
pub(crate) mod table;

use crate::collect::request::{Context, Envelope, Error, Hints, Source, TagMatch};
use crate::memory::Segments;
use crate::packet::{RailId, RegionId};
use crate::transfer::driver::How;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Protocol of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The driver copies the message before the call returns, without a system call.
    Inject,
    /// In a packet, copied.
    Eager,
    /// In a packet, sent in place.
    EagerZcopy,
    /// Eager although it is longer than a packet: in parts, each in a packet.
    EagerParts,
    /// In parts, each in a packet over a different rail, posted by different cores.
    EagerParallel,
    /// The first part, or all of it, follows the request to send without waiting for a Cts.
    Push,
    /// The receiver reads it from the sender's memory after a receive has matched its request to send.
    Read,
    /// The data follows the receiver's answer to a request to send (Rts, Cts).
    Rendezvous,
    /// The receiver has sent an Rtr: chunks follow the request to send at once.
    Rtr,
}

impl Protocol {
    /// Returns the name for the user.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Inject => "inject",
            Protocol::Eager => "eager",
            Protocol::EagerZcopy => "eager-zcopy",
            Protocol::EagerParts => "eager-parts",
            Protocol::EagerParallel => "eager-parallel",
            Protocol::Push => "push",
            Protocol::Read => "read",
            Protocol::Rendezvous => "rendezvous",
            Protocol::Rtr => "rtr",
        }
    }

    /// Whether the message is sent in one packet.
    pub fn is_eager(self) -> bool {
        matches!(self, Protocol::Inject | Protocol::Eager | Protocol::EagerZcopy)
    }

    /// Whether it spends credit: the receiver may have to store the message.
    #[inline(always)]
    pub(crate) fn spends(self) -> bool {
        self != Protocol::Read
    }

    /// Returns how the driver sends a message of this protocol that is sent at once.
    #[inline]
    pub(crate) fn how(self) -> How {
        if self == Protocol::Inject { How::Inject } else { How::Send }
    }
}

/// Next step of a caller that submits a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Continues: its next message may share a packet with this one.
    GoesOn,
    /// Waits for several requests, one of which is this one.
    Steps,
    /// Waits only for this message.
    Waits,
    /// Waits only for this message and has just polled the rails: no more credit can arrive by polling
    /// again.
    Looked,
}

impl Caller {
    #[inline(always)]
    pub(crate) fn waits(self) -> bool {
        matches!(self, Caller::Waits | Caller::Looked)
    }
}

/// The plan of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The protocol.
    pub protocol: Protocol,
    /// The rail, if the message is sent at once; otherwise the strategy chooses when a rail is idle.
    pub rail: Option<RailId>,
    /// Index of the rail's link among those of the peer.
    pub(crate) place: u8,
}

/// A running request, or one whose completion was not reported yet.
#[derive(Debug)]
pub(crate) enum Request {
    /// A small message that is in the window, or sent in place by a rail.
    Eager(eager::EagerSend),
    /// A large message: its envelope, memory, and state.
    Large(Box<rendezvous::LargeSend>),
    /// A receive.
    Recv(Recv),
    /// A one-sided access to memory of a peer.
    OneSided(access::OneSided),
    /// A message that is being read from its sender's memory.
    Reading(read::Reading),
    /// A completed request that was not reported yet.
    Ended(Result<Envelope, Error>),
}

impl Request {
    /// Whether its end was not reported yet, although it may go on in memory of the engine's own.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Request::Ended(_) => true,
            Request::Large(send) => send.kept.is_untold(),
            _ => false,
        }
    }

    /// Returns its context, if it is known and the end of the request was not reported yet.
    pub(crate) fn context(&self) -> Option<Context> {
        match self {
            Request::Eager(send) => Some(send.envelope.context),
            Request::Large(send) => (!send.kept.is_told()).then_some(send.envelope.context),
            Request::Recv(recv) => Some(recv.context),
            Request::Reading(reading) => Some(reading.envelope.context),
            Request::Ended(Ok(envelope) | Err(Error::Truncated { envelope, .. })) => Some(envelope.context),
            Request::OneSided(_) | Request::Ended(Err(_)) => None,
        }
    }
}

/// State of a receive.
#[derive(Debug)]
pub(crate) struct Recv {
    pub(crate) into: Segments,
    pub(crate) from: Source,
    pub(crate) context: Context,
    pub(crate) tag: TagMatch,
    /// Place in the table of posted receives while unmatched.
    pub(crate) posted: Option<u32>,
    /// The receive region for a large message, matched or invited.
    pub(crate) region: Option<RegionId>,
    /// The peer was asked to return the Rtr.
    pub(crate) withdrawn: bool,
    /// The incremental message of which this is the first piece.
    pub(crate) message: Option<u64>,
    /// The rest of its message, once blocks have come with the request to send.
    pub(crate) rest: Option<Box<carried::Rest>>,
}

impl Recv {
    #[inline(always)]
    pub(crate) fn new(into: Segments, (from, context, tag): (Source, Context, TagMatch)) -> Self {
        let (posted, region, message, rest) = (None, None, None, None);
        Recv { into, from, context, tag, posted, region, withdrawn: false, message, rest }
    }
}

/// Protocol states of one peer besides its requests.
#[derive(Debug, Default)]
pub(crate) struct PeerStates {
    /// Rtrs of both directions.
    pub(crate) invitations: rtr::Invitations,
    /// Chunks that the peer will push and has not begun to.
    pub(crate) pushes: Vec<push::Push>,
    /// Messages that arrive in parts.
    pub(crate) parts: Vec<parts::Parts>,
}

/// Other cores that may take work.
#[derive(Debug, Default)]
pub(crate) struct OtherCores {
    pub(crate) cores: Arc<parallel::Cores>,
    /// Distances of the ready cores to the caller's, the nearest first.
    pub(crate) beside: parallel::Beside,
    /// The message that leaves now is worth the preemption of a core.
    pub(crate) preempts: bool,
}

/// Parameters of a message that may be sent at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) len: u64,
    pub(crate) hints: Hints,
    pub(crate) caller: Caller,
}
