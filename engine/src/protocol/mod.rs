//! How a message goes: a protocol is to a message what an algorithm is to a collective.
//!
//! Each protocol has a file with its rules (when it fits, what it is predicted to cost, how the sender
//! begins), the states of both sides, the frames that move them, and what becomes of them when a link or
//! the peer is lost. [`table`] lists the rules, and [`plan`] takes the cheapest protocol that fits.
//!
//! | protocol | states of the sender | states of the receiver |
//! |---|---|---|
//! | inject, eager ([`eager`]) | [`eager::EagerSend`] | none: the message is matched or kept |
//! | parts, parallel ([`parts`], [`parallel`]) | the same, for each part | [`parts::Parts`] |
//! | push ([`push`]) | `Ahead` of [`rendezvous::SendState`] | [`push::Push`], a receive region |
//! | read ([`read`]) | `Readable` of the same | [`read::Reading`] |
//! | rendezvous ([`rendezvous`]) | `Asked`, `Granted`, `Landed` of the same | receive region ([`regions`]) |
//! | rtr ([`rtr`]) | the same, from `Held` on | a receive region without a message yet |
//! | access ([`access`]) | [`access::OneSided`] | none |
//!
//! [`keep`] lets the memory of a send go that its program has cancelled.

pub(crate) mod access;
mod bodies;
pub(crate) mod eager;
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

/// The ways of a message from memory to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The driver copies it before the call returns, without a system call.
    Inject,
    /// In a packet, copied.
    Eager,
    /// In a packet, from where it lies.
    EagerZcopy,
    /// Without asking although it is longer than a packet: in parts, each in a packet.
    EagerParts,
    /// In parts, each in a packet over a rail of its own that another core posts.
    EagerParallel,
    /// Its first part, or all of it, follows its request to send without waiting for an answer.
    Push,
    /// The receiver reads it from the sender's memory when a receive has matched its request to send.
    Read,
    /// The receiver is asked first (Rts, Cts).
    Rendezvous,
    /// The receiver has invited it: chunks follow the request to send at once.
    Rtr,
}

impl Protocol {
    /// Its name for people.
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

    /// Whether the message goes in one packet.
    pub fn is_eager(self) -> bool {
        matches!(self, Protocol::Inject | Protocol::Eager | Protocol::EagerZcopy)
    }

    /// Whether it takes credit: the receiver may have to keep the message.
    #[inline(always)]
    pub(crate) fn spends(self) -> bool {
        self != Protocol::Read
    }

    /// What a driver is asked to do with a message of this protocol that leaves at once.
    #[inline]
    pub(crate) fn how(self) -> How {
        if self == Protocol::Inject { How::Inject } else { How::Send }
    }
}

/// The next step of a caller that submits a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Goes on: its next message may share a packet with this one.
    GoesOn,
    /// Waits for several things of which this is one.
    Steps,
    /// Waits for nothing else.
    Waits,
    /// Waits for nothing else, and has just looked at the rails: there is no more credit to be found.
    Looked,
}

impl Caller {
    #[inline(always)]
    pub(crate) fn waits(self) -> bool {
        matches!(self, Caller::Waits | Caller::Looked)
    }
}

/// How a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The protocol.
    pub protocol: Protocol,
    /// The rail, if it leaves at once; otherwise the strategy chooses when a rail asks.
    pub rail: Option<RailId>,
    /// Place of the rail's link among those of the peer.
    pub(crate) place: u8,
}

/// A request that runs, or whose end was not reported yet.
#[derive(Debug)]
pub(crate) enum Request {
    /// A small message that is in the window, or on a rail in place.
    Eager(eager::EagerSend),
    /// A large message: its envelope, memory, and how far it is.
    Large(Box<rendezvous::LargeSend>),
    /// A receive.
    Recv(Recv),
    /// An access to memory of a peer.
    OneSided(access::OneSided),
    /// A message that is read from its sender's memory.
    Reading(read::Reading),
    /// It has ended, and that was not reported yet.
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

    /// Its context, if it is known and somebody still waits for its end.
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
    /// The receive region to which a large message comes, or is invited.
    pub(crate) region: Option<RegionId>,
    /// The peer was asked to give the Rtr back.
    pub(crate) withdrawn: bool,
    /// The incremental message of which this is the first piece.
    pub(crate) message: Option<u64>,
}

impl Recv {
    #[inline(always)]
    pub(crate) fn new(into: Segments, (from, context, tag): (Source, Context, TagMatch)) -> Self {
        Recv { into, from, context, tag, posted: None, region: None, withdrawn: false, message: None }
    }
}

/// States that protocols keep for one peer besides its requests.
#[derive(Debug, Default)]
pub(crate) struct PeerStates {
    /// Receives that are posted before their messages are known, both ways.
    pub(crate) invitations: rtr::Invitations,
    /// Chunks that the peer has announced to push and has not begun to.
    pub(crate) pushes: Vec<push::Push>,
    /// Messages of which parts have come, or will.
    pub(crate) parts: Vec<parts::Parts>,
}

/// Cores beside the caller's.
#[derive(Debug, Default)]
pub(crate) struct OtherCores {
    pub(crate) cores: Arc<parallel::Cores>,
    /// How near those that stand by are to the caller's, the nearest first.
    pub(crate) beside: parallel::Beside,
}

/// The figures of a message that finds its rail idle, and whether a rail has refused it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) len: u64,
    pub(crate) hints: Hints,
    pub(crate) caller: Caller,
    pub(crate) is_refused: bool,
}
