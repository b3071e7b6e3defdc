//! Origin of an incoming handshake, as the driver knows it.

use std::net::IpAddr;

/// Origin of a stranger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Text for the log.
    pub text: String,
    /// The address of its host; none: the network is local to this host.
    pub host: Option<IpAddr>,
    /// Whether a peer has this address.
    pub is_known: bool,
}
