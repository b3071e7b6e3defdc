//! Counts of messages by peer, computed when somebody asks: numbers of flows, and what waits in the tables.

use crate::engine::Engine;
use crate::packet::PeerId;

/// Messages to and from one peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Messages submitted to it, those without order excepted; of each context modulo 2^32.
    pub sent: u64,
    /// Of these, messages that needed a request to send (rendezvous and push).
    pub requested: u64,
    /// Messages that have arrived from it in order; of each context modulo 2^32.
    pub received: u64,
    /// Messages that have arrived and wait for their receive.
    pub unexpected: u64,
    /// Bytes of their data that lie in memory of the engine's own.
    pub unexpected_bytes: u64,
}

impl Engine {
    /// Messages to and from this peer until now; none if it is unknown. It takes as long as there are
    /// contexts and unexpected messages: sending and receiving count nothing for it.
    pub fn traffic(&self, id: PeerId) -> Option<Traffic> {
        let peer = self.peer(id)?;
        let (sent, received) = peer.flows.counts();
        let (unexpected, unexpected_bytes) = self.receives.matching.unexpected_from(id);
        Some(Traffic { sent, requested: peer.flows.requested, received, unexpected, unexpected_bytes })
    }
}
