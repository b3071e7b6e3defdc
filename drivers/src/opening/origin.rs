//! From where strangers come, as the driver knows it.

use std::net::IpAddr;

/// From where a stranger comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// In words, for the log.
    pub text: String,
    /// The address of its host; none: all come from this one.
    pub host: Option<IpAddr>,
    /// Whether a peer is there.
    pub is_known: bool,
}
