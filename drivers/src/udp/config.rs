//! What a UDP rail is opened with.

use crate::interface::Interface;
use nmad_engine::packet::PeerId;
use std::net::IpAddr;
use std::time::Duration;

/// How a UDP rail is opened.
#[derive(Clone)]
pub struct UdpConfig {
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of this rail in this process.
    pub rail: u8,
    /// Interface, its address and speed.
    pub interface: Interface,
    /// Secret of the job; datagrams of senders that do not know it are dropped.
    pub secret: [u8; 32],
    /// Bytes of socket buffer asked for, each way and for each peer; the system gives what it allows.
    pub buffer: usize,
    /// Longest time for a link to open, from the order to the end of the handshake.
    pub bound: Duration,
    /// Silence after which a peer that was asked again and again counts as gone.
    pub silence: Duration,
}

/// As long as a peer may say nothing, not even that it is there.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

impl UdpConfig {
    /// The configuration that suits most networks.
    pub fn new(rank: PeerId, rail: u8, interface: Interface, secret: [u8; 32]) -> Self {
        let (buffer, bound, silence) = (4 << 20, Duration::from_secs(5), SILENCE);
        UdpConfig { rank, rail, interface, secret, buffer, bound, silence }
    }

    /// Name of the rail for the user.
    pub fn name(&self) -> String {
        format!("udp/{}", self.interface.name)
    }

    /// The address that the rail listens on.
    pub fn address(&self) -> IpAddr {
        self.interface.address
    }
}

impl std::fmt::Debug for UdpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the secret: configurations end up in logs.
        f.debug_struct("UdpConfig")
            .field("rank", &self.rank)
            .field("rail", &self.rail)
            .field("interface", &self.interface)
            .finish_non_exhaustive()
    }
}
