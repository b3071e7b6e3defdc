//! Drivers: the layer below the engine, one folder per kind of network.
//!
//! A driver implements [`nmad_engine::transfer::driver::Driver`]: it takes orders, moves bytes and reports
//! events. It sees headers, never frames or requests, and knows neither strategies nor profiles. Each
//! folder has the same file names: `rail.rs` is the driver itself, `link.rs` one peer over it, `write.rs`
//! and `read.rs` the two directions, `opening.rs` the driver's own part of opening a link. [`opening`] is
//! the state machine that opens links for all drivers, [`node`] accesses the memory of other processes of a
//! node, [`around`] holds drivers that wrap a driver, [`conformance`] is the test suite that every driver
//! passes.
#![deny(unsafe_code)]

pub mod around;
mod carrier;
pub mod conformance;
mod connections;
mod conversation;
mod datagram;
pub mod error;
mod fabric;
pub mod handshake;
mod hot;
pub mod interface;
pub mod interpreted;
mod known;
#[allow(unsafe_code)]
pub mod library;
pub mod loopback;
pub mod network;
mod news;
pub mod node;
mod ofi;
pub mod opening;
pub mod packet;
#[allow(unsafe_code)]
mod ready;
pub mod regions;
pub mod shm;
pub mod tcp;
mod timer;
pub mod udp;
mod verbs;
mod watch;

/// The drivers for interfaces, the default first.
const NETWORKS: &[network::Network] = &[
    network::Network::of::<tcp::TcpRail>(),
    network::Network::of::<udp::UdpRail>(),
    network::Network::of::<packet::PacketRail>(),
    network::Network::of::<verbs::VerbsRail>(),
    network::Network::variant::<ofi::OfiRail>("ofi:tcp"),
    network::Network::variant::<ofi::OfiRail>("ofi:shm"),
    network::Network::variant::<ofi::OfiRail>("ofi:udp"),
    network::Network::variant::<ofi::OfiRail>("ofi:sockets"),
    network::Network::variant::<ofi::OfiRail>("ofi:verbs"),
    network::Network::variant::<ofi::OfiRail>("ofi:efa"),
    network::Network::variant::<ofi::OfiRail>("ofi:cxi"),
    network::Network::variant::<ofi::OfiRail>("ofi:psm2"),
    network::Network::variant::<ofi::OfiRail>("ofi:psm3"),
    network::Network::variant::<ofi::OfiRail>("ofi:opx"),
];
