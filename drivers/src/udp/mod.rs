//! Driver for UDP over one interface, a network that loses packets.
//!
//! Each packet and chunk leaves as a train of datagrams that the kernel cuts (UDP_SEGMENT) and, at the
//! other side, joins again (UDP_GRO). The engine repairs losses: it sends the whole order again, and the
//! receiver fills in the parts that it lacks. Each peer has a socket. The rail itself is that of all
//! networks of datagrams ([`crate::datagram`]). The driver knows headers, never frames.

pub(crate) mod config;
mod net;
mod opening;
mod rail;
mod read;
mod route;
mod socket;
mod write;

pub use config::UdpConfig;
pub use rail::UdpRail;

pub use crate::datagram::strays::Stray;
use crate::error::DriverError;
use crate::network::{OverInterface, Place};

impl OverInterface for UdpRail {
    const NAME: &'static str = "udp";

    fn open_over(_: &'static str, place: Place) -> Result<Self, DriverError> {
        let Place { rank, rail, interface, secret, encrypt } = place;
        UdpRail::open(UdpConfig { encrypt, ..UdpConfig::new(rank, rail, interface, secret) })
    }
}
