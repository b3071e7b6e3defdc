//! What a rail in shared memory is opened with.

use nmad_engine::packet::PeerId;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Name of the rail for the user.
pub(super) const NAME: &str = "shm";

/// How the rail is opened.
#[derive(Clone)]
pub struct ShmConfig {
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of this rail in this process.
    pub rail: u8,
    /// Secret of the job; a process that does not know it is refused.
    pub secret: [u8; 32],
    /// Copy large data straight from process to process where the system permits that; otherwise, and where
    /// it does not, through the shared memory.
    pub cross_memory: bool,
    /// Time for a link to open, from the order to the end of the handshake. After it the user gets a message
    /// that the peer is slow, and a stranger that has not proved its identity is disconnected.
    pub bound: Duration,
    /// There are more processes than cores: a peer that does nothing just now may have none, and work that
    /// this process saves is time for others. Set, if at all, before the rail's limits are asked for.
    pub oversubscribed: Arc<AtomicBool>,
    /// What rails of earlier jobs have learnt ([`nmad_engine::Statistics::learnt`]); lines that are not
    /// understood are left out.
    pub learnt: Vec<String>,
}

impl ShmConfig {
    /// The configuration that suits most machines.
    pub fn new(rank: PeerId, rail: u8, secret: [u8; 32]) -> Self {
        let oversubscribed = Arc::default();
        let (bound, learnt) = (Duration::from_secs(5), Vec::new());
        ShmConfig { rank, rail, secret, cross_memory: true, bound, oversubscribed, learnt }
    }
}

impl std::fmt::Debug for ShmConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the secret: configurations end up in logs.
        f.debug_struct("ShmConfig")
            .field("rank", &self.rank)
            .field("rail", &self.rail)
            .field("cross_memory", &self.cross_memory)
            .finish_non_exhaustive()
    }
}
