//! The rules of a protocol: when it fits, what it costs, and how the sender begins.

use crate::collect::request::{Envelope, Hints};
use crate::engine::Engine;
use crate::engine::peer::Peer;
use crate::memory::Segments;
use crate::packet::RequestId;
use crate::protocol::Protocol;

/// Parameters of a message whose protocol is being chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    /// Length in bytes.
    pub(crate) len: u64,
    pub(crate) hints: Hints,
    /// It is contiguous, so another process can read it by address.
    pub(crate) has_address: bool,
    /// The receiver has sent an Rtr for it.
    pub(crate) is_invited: bool,
    /// Longest chunk that a rail gets at once, in bytes.
    pub(crate) chunk: u64,
}

/// The predicted cost of a message with one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// The length is outside the range in which the protocol was measured to be the fastest (P4 section
    /// III-B): any protocol within its own range is preferred.
    pub(crate) is_beyond: bool,
    /// Nanoseconds ([`Rules::cost`]).
    pub(crate) ns: u64,
}

/// Families of protocols, of which measurements tell the fastest for each length (P4 section III-B).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// The receiver reads the message from the sender's memory.
    Read,
    /// It is sent eagerly.
    Eager,
    /// Rendezvous, with a Cts or an Rtr, or with a pushed first part.
    Rendezvous,
}

/// A submitted message.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) envelope: Envelope,
    pub(crate) data: Segments,
    pub(crate) hints: Hints,
}

/// The rules of one protocol.
pub(crate) struct Rules {
    pub(crate) protocol: Protocol,
    pub(crate) family: Family,
    /// Whether a message may use the protocol: limits, credit, and the state of the receiver. Has no side
    /// effects.
    pub(crate) fits: fn(&Message, &Peer) -> bool,
    /// Returns the predicted nanoseconds of a message that fits, from submission until the receiver has it,
    /// with a posted receive and idle rails. Has no side effects.
    pub(crate) cost: fn(&Message, &Peer) -> u64,
    /// The sender's first step: puts the message into the window, or lets it wait for an Rtr.
    pub(crate) begin: fn(&mut Engine, Submission) -> RequestId,
}
