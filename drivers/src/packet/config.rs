//! Configuration of a raw Ethernet rail.

use crate::interface::Interface;
use crate::udp::config::SILENCE;
use nmad_engine::packet::PeerId;
use nmad_seal::Policy;
use std::time::Duration;

/// The parameters with which a raw Ethernet rail is opened.
#[derive(Clone)]
pub struct PacketConfig {
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of this rail in this process.
    pub rail: u8,
    /// The network interface with its address and speed. The address determines which peers are on the same
    /// network, and at that address the kernel answers for processes that have ended.
    pub interface: Interface,
    /// Secret of the job; frames of senders that do not know it are dropped.
    pub secret: [u8; 32],
    /// Time limit for opening a link, from the order to the end of the handshake.
    pub bound: Duration,
    /// Which links are encrypted.
    pub encrypt: Policy,
    /// Time without any answer after which a peer counts as gone.
    pub silence: Duration,
}

impl PacketConfig {
    /// The default configuration.
    pub fn new(rank: PeerId, rail: u8, interface: Interface, secret: [u8; 32]) -> Self {
        let (bound, encrypt) = (Duration::from_secs(5), Policy::default());
        PacketConfig { rank, rail, interface, secret, bound, encrypt, silence: SILENCE }
    }

    /// Name of the rail in messages to the user.
    pub fn name(&self) -> String {
        format!("packet/{}", self.interface.name)
    }
}

impl std::fmt::Debug for PacketConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secret is omitted, because configurations are logged.
        f.debug_struct("PacketConfig")
            .field("rank", &self.rank)
            .field("rail", &self.rail)
            .field("interface", &self.interface)
            .finish_non_exhaustive()
    }
}
