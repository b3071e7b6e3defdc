//! Counts of messages by peer, computed on request from the flows' sequence numbers and the matching
//! tables.

use crate::collect::sequence::Flows;
use crate::engine::Inspect;
use crate::packet::PeerId;

/// Messages to and from one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Messages submitted to it, except unordered ones; each context counts modulo 2^32.
    pub sent: u64,
    /// Of these, messages that needed a request to send (rendezvous and push).
    pub requested: u64,
    /// Blocks of these that traveled with the request to send.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub blocks_bytes: u64,
    /// Messages that have arrived from it in order; each context counts modulo 2^32.
    pub received: u64,
    /// Messages that have arrived and match no receive yet.
    pub unexpected: u64,
    /// Bytes of their data that are stored in memory of the engine.
    pub unexpected_bytes: u64,
}

impl Inspect<'_> {
    /// Returns the messages to and from this peer so far; `None` if it is unknown. The time is proportional
    /// to the number of contexts and unexpected messages; sending and receiving do no extra counting.
    pub fn traffic(self, id: PeerId) -> Option<Traffic> {
        let peer = self.0.peer(id)?;
        let (sent, received) = peer.flows.counts();
        let (unexpected, unexpected_bytes) = self.0.receives.matching.unexpected_from(id);
        let Flows { requested, blocks, blocks_bytes, .. } = peer.flows;
        Some(Traffic { sent, requested, blocks, blocks_bytes, received, unexpected, unexpected_bytes })
    }
}
