//! The rules of a protocol: when it fits, what it costs, and how the sender begins.

use crate::collect::request::{Envelope, Hints};
use crate::engine::Engine;
use crate::engine::peer::Peer;
use crate::memory::Segments;
use crate::packet::RequestId;
use crate::protocol::Protocol;
use crate::protocol::leaving::Refused;
use nmad_wire::Rtr;

/// A message whose protocol is to be found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    /// Bytes.
    pub(crate) len: u64,
    pub(crate) hints: Hints,
    /// It lies in one piece, so another process can be told where.
    pub(crate) has_address: bool,
    /// The receiver has invited it.
    pub(crate) is_invited: bool,
    /// Longest chunk that a rail gets at once, in bytes.
    pub(crate) chunk: u64,
}

/// The predicted cost of a message with one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// The length is beyond those for which the protocol was measured to be the fastest (P4 section III-B):
    /// any protocol within its own lengths comes first.
    pub(crate) is_beyond: bool,
    /// From submission until the receiver has it, in nanoseconds, with a posted receive and idle rails.
    pub(crate) ns: u64,
}

/// A message that is submitted.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) envelope: Envelope,
    pub(crate) data: Segments,
    pub(crate) hints: Hints,
    /// The attempt that a rail has refused.
    pub(crate) refused: Option<Refused>,
    /// The receiver's invitation.
    pub(crate) rtr: Option<Rtr>,
}

/// A protocol.
pub(crate) struct Rules {
    pub(crate) protocol: Protocol,
    /// Whether a message may go so: limits, credit, and what is known of the receiver. Changes nothing.
    pub(crate) fits: fn(&Message, &Peer) -> bool,
    /// The predicted cost of a message that fits. Changes nothing.
    pub(crate) cost: fn(&Message, &Peer) -> Cost,
    /// The sender's first step: the message is in the window, or waits for an invitation.
    pub(crate) begin: fn(&mut Engine, Submission) -> RequestId,
}
