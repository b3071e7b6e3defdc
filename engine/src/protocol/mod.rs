//! The ways of a message, and what is asked of the one function that chooses between them ([`crate::protocol::plan`]).

pub(crate) mod access;
pub(crate) mod leaving;
pub(crate) mod parallel;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod push;
pub(crate) mod read;
pub(crate) mod rendezvous;
pub(crate) mod rtr;

use crate::collect::request::Hints;
use crate::packet::RailId;
use crate::transfer::driver::How;

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
        match self {
            Protocol::Inject => How::Inject,
            _ => How::Send,
        }
    }
}

/// What somebody who submits a message does then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// Goes on: its next message may share a packet with this one.
    GoesOn,
    /// Waits for several things of which this is one.
    Steps,
    /// Waits for nothing else.
    Waits,
    /// The same, and has just looked at the rails: there is no more credit to be found.
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

impl Plan {
    #[inline]
    pub(crate) fn at_once(protocol: Protocol, rail: RailId, place: usize) -> Option<Plan> {
        Some(Plan { protocol, rail: Some(rail), place: place as u8 })
    }
}

/// The figures of a message that decide, and what was tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) len: u64,
    pub(crate) hints: Hints,
    pub(crate) caller: Caller,
    /// The rail has refused this; something else is to be found.
    pub(crate) refused: Option<Protocol>,
}
