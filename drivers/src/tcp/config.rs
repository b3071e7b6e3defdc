//! Configuration of a TCP rail.

use crate::interface::Interface;
use nmad_engine::packet::PeerId;
use nmad_seal::Policy;
use std::net::IpAddr;
use std::time::Duration;

/// The parameters with which a TCP rail is opened. [`TcpConfig::new`] has the values that were measured to
/// be best.
#[derive(Clone)]
pub struct TcpConfig {
    /// Name of the driver: `tcp`, or a driver whose links are opened over TCP.
    pub driver: &'static str,
    /// Rank of this process.
    pub rank: PeerId,
    /// Number of this rail in this process.
    pub rail: u8,
    /// The network interface with its address and speed.
    pub interface: Interface,
    /// Secret of the job; a peer that does not know it is refused.
    pub secret: [u8; 32],
    /// Congestion control; none: reno where the system allows it, else cubic, else the system's default.
    /// Algorithms that pace by timers (bbr) cost a factor of five on fast networks.
    pub congestion: Option<String>,
    /// Send buffer in bytes; none: the kernel tunes it, which brings stalls of a timer tick. The kernel
    /// doubles it for its bookkeeping, and processes pending acknowledgements after sixteen pieces of 64
    /// KiB: with a little more than that, a call can continue while the peer reads, where 512 KiB would end
    /// it.
    pub send_buffer: Option<usize>,
    /// Receive buffer in bytes; none: the kernel tunes it.
    pub receive_buffer: Option<usize>,
    /// Time without traffic after which an idle link is probed, and time between probes. The link is lost
    /// after three unanswered ones.
    pub keepalive: Duration,
    /// Time limit for opening a link, from the order to the end of the handshake.
    pub bound: Duration,
    /// Which links are encrypted.
    pub encrypt: Policy,
    /// Also try addresses outside the subnet of the interface, because a router leads there.
    pub routed: bool,
}

impl TcpConfig {
    /// Default send buffer of a link, in bytes.
    pub const SEND_BUFFER: usize = 640 << 10;

    /// The default configuration.
    pub fn new(rank: PeerId, rail: u8, interface: Interface, secret: [u8; 32]) -> Self {
        TcpConfig {
            driver: "tcp",
            rank,
            rail,
            interface,
            secret,
            congestion: None,
            send_buffer: Some(TcpConfig::SEND_BUFFER),
            receive_buffer: None,
            keepalive: Duration::from_secs(1),
            bound: Duration::from_secs(5),
            encrypt: Policy::default(),
            routed: false,
        }
    }

    /// Name of the rail in messages to the user.
    pub fn name(&self) -> String {
        format!("{}/{}", self.driver, self.interface.name)
    }

    /// The address that the rail listens on.
    pub fn address(&self) -> IpAddr {
        self.interface.address
    }
}

impl std::fmt::Debug for TcpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secret is omitted, because configurations are logged.
        f.debug_struct("TcpConfig")
            .field("rank", &self.rank)
            .field("rail", &self.rail)
            .field("interface", &self.interface)
            .field("congestion", &self.congestion)
            .finish_non_exhaustive()
    }
}
