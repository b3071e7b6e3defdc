//! Receives of the application: posted receives, the receive of a blocking call, matched probes, and
//! messages that are unpacked piece by piece. Matching itself is in [`crate::collect::matching`].

pub(crate) mod claims;
mod closed;
pub(crate) mod expected;
mod pieces;
mod post;
mod requested;

use crate::collect::matching::{Matching, Unexpected};
use crate::collect::message::Unpacked;
use crate::protocol::carried::StoredBlocks;
use crate::slab::Slab;

/// Receives that wait for messages, and messages that wait for receives.
#[derive(Debug, Default)]
pub(crate) struct Receives {
    pub(crate) matching: Matching,
    /// A blocking receive, which is not in the tables.
    pub(crate) expected: expected::Expected,
    /// Messages found by matched probes and not received yet.
    pub(crate) claimed: Slab<Unexpected>,
    /// Messages that are unpacked piece by piece.
    pub(crate) messages: Slab<Unpacked>,
    pub(crate) closed: closed::Closed,
    /// Blocks of messages whose requests to send match no receive yet.
    pub(crate) blocks: StoredBlocks,
}
