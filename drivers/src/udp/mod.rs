//! Driver for UDP over one interface, a network that loses packets.
//!
//! Each packet and chunk leaves as a train of datagrams that the kernel cuts (UDP_SEGMENT) and, at the
//! other side, joins again (UDP_GRO). The engine repairs losses: it sends the whole order again, and the
//! receiver fills in the parts that it lacks ([`assembly`]). Each peer has a socket, opened by a handshake
//! that proves the secret of the job and probes which length passes ([`greeting`], [`greeters`]); from then
//! on each datagram has a tag that no sender off the path can guess ([`seal`]). The driver knows headers,
//! never frames.

pub(crate) mod assembly;
pub(crate) mod config;
pub(crate) mod datagram;
pub(crate) mod greeters;
pub(crate) mod greeting;
mod link;
mod opening;
mod pads;
mod peers;
mod rail;
mod read;
pub(crate) mod seal;
pub(crate) mod silence;
mod socket;
pub(crate) mod strays;
mod window;
pub(crate) mod write;

pub use config::UdpConfig;
pub use rail::UdpRail;

use crate::error::DriverError;
use crate::network::{OverInterface, Place};
pub use strays::Stray;

/// Longest packet in bytes: 64 KiB of data and its headers.
pub(crate) const PACKET: usize = 72 << 10;
/// Longest chunk in bytes of data: with its header it leaves as one train at the usual path MTU.
pub(crate) const CHUNK: usize = 60 << 10;

impl OverInterface for UdpRail {
    const NAME: &'static str = "udp";

    fn open_over(_: &'static str, place: Place) -> Result<Self, DriverError> {
        let Place { rank, rail, interface, secret } = place;
        UdpRail::open(UdpConfig::new(rank, rail, interface, secret))
    }
}
