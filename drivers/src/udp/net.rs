//! The state of the network, which opening and reading use.

use super::config::UdpConfig;
use super::route::Way;
use crate::datagram::greeters::Greeters;
use crate::hot::Hot;
use crate::known::Known;
use crate::tcp::address::Address;
use crate::watch::{Token, Watch};
use rustix::fd::OwnedFd;

/// UDP on one interface.
#[derive(Debug)]
pub struct Udp {
    pub(super) config: UdpConfig,
    pub(super) watch: Watch,
    pub(super) listener: OwnedFd,
    pub(super) port: u16,
    pub(super) known: Known<Address>,
    pub(super) greeters: Greeters<Way>,
    pub(super) scratch: Box<[u8]>,
    /// Where it listens.
    pub(super) address: Address,
    /// Links that carry traffic now.
    pub(super) hot: Hot,
    /// Reused by looks at descriptors.
    pub(super) looked: Vec<Token>,
}
