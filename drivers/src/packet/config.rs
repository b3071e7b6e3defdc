//! What a rail of raw Ethernet is opened with.

use crate::interface::Interface;
use crate::udp::config::SILENCE;
use nmad_engine::packet::PeerId;
use std::time::Duration;

/// How a rail of raw Ethernet is opened.
#[derive(Clone)]
pub struct PacketConfig {
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of this rail in this process.
    pub rail: u8,
    /// Interface, its address and speed. The address says which peers are on the same network, and the kernel
    /// answers there for processes that have ended.
    pub interface: Interface,
    /// Secret of the job; frames of senders that do not know it are dropped.
    pub secret: [u8; 32],
    /// Longest time for a link to open, from the order to the end of the handshake.
    pub bound: Duration,
    /// Silence after which a peer that was asked again and again counts as gone.
    pub silence: Duration,
}

impl PacketConfig {
    /// The configuration that suits most networks.
    pub fn new(rank: PeerId, rail: u8, interface: Interface, secret: [u8; 32]) -> Self {
        PacketConfig { rank, rail, interface, secret, bound: Duration::from_secs(5), silence: SILENCE }
    }

    /// Name of the rail for the user.
    pub fn name(&self) -> String {
        format!("packet/{}", self.interface.name)
    }
}

impl std::fmt::Debug for PacketConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the secret: configurations end up in logs.
        f.debug_struct("PacketConfig")
            .field("rank", &self.rank)
            .field("rail", &self.rail)
            .field("interface", &self.interface)
            .finish_non_exhaustive()
    }
}
