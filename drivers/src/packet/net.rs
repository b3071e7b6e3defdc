//! The state of the network, which opening and reading use.

use super::config::PacketConfig;
use super::digest::Digest;
use super::frame::{Place, Way};
use super::sys::Socket;
use super::wakes::Wakes;
use crate::datagram::greeters::Greeters;
use crate::known::Known;
use hashbrown::HashMap;
use std::net::UdpSocket;

/// Raw Ethernet on one interface.
#[derive(Debug)]
pub struct Ethernet {
    pub(super) config: PacketConfig,
    pub(super) place: Place,
    pub(super) socket: Socket,
    pub(super) digest: Digest,
    pub(super) known: Known<Place>,
    pub(super) greeters: Greeters<Way>,
    /// Reserves the port: no other process on this network has it, and the kernel answers there after our
    /// end.
    pub(super) port: UdpSocket,
    pub(super) wakes: Wakes,
    pub(super) by_way: HashMap<Way, usize>,
    /// The link from which the last frame came.
    pub(super) latest: Option<(Way, usize)>,
}
