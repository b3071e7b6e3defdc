//! Driver for raw Ethernet frames on one interface, for users with CAP_NET_RAW.
//!
//! Each rail has a socket of the AF_PACKET family, with an EtherType of our own and a receive ring that is
//! mapped into the process, so that polling for frames costs a read of memory ([`sys`]). The rail is that of
//! all networks of datagrams ([`crate::datagram`]). Instead of IP and UDP there is a header of four bytes
//! with two ports ([`frame`]), and the kernel's filter drops frames for other processes. Tags cover the data
//! too, which no other checksum protects on the way ([`digest`]). The driver knows headers, never frames of
//! the engine.

mod config;
mod digest;
pub mod frame;
mod net;
mod opening;
mod rail;
mod read;
mod route;
pub mod sys;
mod wakes;
mod write;

pub use config::PacketConfig;
pub use rail::PacketRail;

use crate::error::DriverError;
use crate::network::{OverInterface, Place};

impl OverInterface for PacketRail {
    const NAME: &'static str = "packet";

    fn open_over(_: &'static str, place: Place) -> Result<Self, DriverError> {
        let Place { rank, rail, interface, secret, encrypt } = place;
        PacketRail::open(PacketConfig { encrypt, ..PacketConfig::new(rank, rail, interface, secret) })
    }

    fn hindrance(_: &str) -> Option<String> {
        PacketRail::hindrance()
    }
}
