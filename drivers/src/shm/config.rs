//! Configuration of a shared-memory rail.

use nmad_engine::packet::PeerId;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Name of the rail in messages to the user.
pub(super) const NAME: &str = "shm";

/// The parameters with which the rail is opened.
#[derive(Clone)]
pub struct ShmConfig {
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of this rail in this process.
    pub rail: u8,
    /// Secret of the job; a process that does not know it is refused.
    pub secret: [u8; 32],
    /// Copy large data directly from process to process where the system permits that; otherwise all data
    /// goes through the shared segment.
    pub cross_memory: bool,
    /// Time limit for opening a link, from the order to the end of the handshake. After it the user gets a
    /// message that the peer is slow, and a process that has not proved its identity is disconnected.
    pub bound: Duration,
    /// There are more processes than cores: an inactive peer may have no core, and CPU time that this
    /// process saves is available to others. Must be set before the rail's limits are queried.
    pub oversubscribed: Arc<AtomicBool>,
    /// Measurements of rails of earlier jobs ([`nmad_engine::Statistics::learnt`]); lines that cannot be
    /// parsed are ignored.
    pub learnt: Vec<String>,
}

impl ShmConfig {
    /// The default configuration.
    pub fn new(rank: PeerId, rail: u8, secret: [u8; 32]) -> Self {
        let oversubscribed = Arc::default();
        let (bound, learnt) = (Duration::from_secs(5), Vec::new());
        ShmConfig { rank, rail, secret, cross_memory: true, bound, oversubscribed, learnt }
    }
}

impl std::fmt::Debug for ShmConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secret is omitted, because configurations are logged.
        f.debug_struct("ShmConfig")
            .field("rank", &self.rank)
            .field("rail", &self.rail)
            .field("cross_memory", &self.cross_memory)
            .finish_non_exhaustive()
    }
}
