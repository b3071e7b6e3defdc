//! Configuration of a UDP rail.

use crate::interface::Interface;
use nmad_engine::packet::PeerId;
use nmad_seal::Policy;
use std::net::IpAddr;
use std::time::Duration;

/// The parameters with which a UDP rail is opened.
#[derive(Clone)]
pub struct UdpConfig {
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of this rail in this process.
    pub rail: u8,
    /// The network interface with its address and speed.
    pub interface: Interface,
    /// Secret of the job; datagrams of senders that do not know it are dropped.
    pub secret: [u8; 32],
    /// Bytes of socket buffer requested, per direction and peer; the system may grant less.
    pub buffer: usize,
    /// Time limit for opening a link, from the order to the end of the handshake.
    pub bound: Duration,
    /// Which links are encrypted.
    pub encrypt: Policy,
    /// Time without any answer after which a peer counts as gone.
    pub silence: Duration,
}

/// Default time for which a peer may leave all probes unanswered.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);

impl UdpConfig {
    /// The default configuration.
    pub fn new(rank: PeerId, rail: u8, interface: Interface, secret: [u8; 32]) -> Self {
        let (buffer, bound, silence) = (4 << 20, Duration::from_secs(5), SILENCE);
        UdpConfig { rank, rail, interface, secret, buffer, bound, encrypt: Policy::default(), silence }
    }

    /// Name of the rail in messages to the user.
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
        // The secret is omitted, because configurations are logged.
        f.debug_struct("UdpConfig")
            .field("rank", &self.rank)
            .field("rail", &self.rail)
            .field("interface", &self.interface)
            .finish_non_exhaustive()
    }
}
