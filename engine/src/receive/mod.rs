//! Receives of the application: posted ones, one of a thread that waits, messages that are found now and
//! received later, and messages that are taken apart piece by piece. Matching itself is
//! [`crate::collect::matching`].

pub(crate) mod claims;
pub(crate) mod expected;
mod pieces;
mod post;

use crate::collect::matching::{Matching, Unexpected};
use crate::collect::message::Unpacked;
use crate::slab::Slab;

/// Receives and messages that wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Receives {
    pub(crate) matching: Matching,
    /// A blocking receive, which is in no table.
    pub(crate) expected: expected::Expected,
    /// Messages that were claimed and are not received yet.
    pub(crate) claimed: Slab<Unexpected>,
    /// Messages that are taken apart piece by piece.
    pub(crate) messages: Slab<Unpacked>,
}
