//! P5, "communication imbalance": its toys and its miniFE, with the limits of the paper's library, with the
//! paper's two remedies, and with the library's own choice, which nobody sets.
//!
//! The paper's library is Intel MPI: a message above the eager limit asks its receiver, and a receiver that
//! computes does not answer. That is this engine with a fixed limit on hosts that make no progress while they
//! compute. The library's own policy has no fixed limit, learns that receivers are late, and looks after its
//! rails once in a millisecond meanwhile.

pub mod chart;
pub mod mesh;
mod minife;
pub mod phase;
mod spots;
mod timeline;
mod toys;
mod wide;

pub use minife::{limits, limits_picture, patterns, patterns_picture, scaling, scaling_picture};
pub use phase::Letter;
pub use spots::spots;
pub use timeline::{timelines, timelines_picture};
pub use toys::{remedies, remedies_picture, shares, sizes, sizes_picture};
pub use wide::{Wide, wide};

use super::card::Card;
use super::machines::X5650;
use super::networks::MX_10G;
use crate::machine::{Copying, Machine};
use nmad_engine::Config;
use phase::Policy;

/// InfiniBand FDR10, after table III: 4 MiB in 897 us, 32 KiB in 12.
const FDR10: Card = Card {
    name: "ib-fdr10",
    latency_ns: 1_300,
    bandwidth: 4_720_000_000,
    send_ns: 300,
    recv_ns: 300,
    look_ns: 50,
    gap_ns: 100,
    depth: 4,
    pio_max: 0,
    copy_max: 0,
    setup_ns: 500,
    register_ns: [300, 0],
    packet: 18 << 10,
    ..MX_10G
};

/// 10 Gigabit Ethernet, after table III: 4 MiB in 34569 us, which is 121 MB/s, and 32 KiB in 577.
const ETHERNET: Card = Card {
    name: "10gbe",
    latency_ns: 345_000,
    bandwidth: 124_000_000,
    send_ns: 5_000,
    recv_ns: 5_000,
    look_ns: 800,
    setup_ns: 0,
    register_ns: [0, 0],
    packet: 66 << 10,
    ..FDR10
};

/// Xeon E5-2670: MareNostrum III. Copies are assumed: 10 GB/s in a cache, 5 beyond.
const E5_2670: Machine = Machine {
    name: "Xeon E5-2670",
    copy: Some(Copying { start_ns: 5, near: 10_000_000_000, near_len: 256 << 10, far: 5_000_000_000 }),
    bus: None,
    ..X5650
};

/// A network of the paper and what its library does on it.
#[derive(Debug, Clone, Copy)]
pub struct Network {
    card: &'static Card,
    /// In titles.
    title: &'static str,
    /// The eager limit that the paper compares with, in bytes.
    low_max: usize,
    /// The one that takes effect unless the user sets another.
    default_max: usize,
    /// The highest one that takes effect.
    highest_max: usize,
    /// What a host of the paper's library keeps for each peer's unexpected messages, in bytes.
    credit: u64,
}

impl Network {
    /// How engines are configured: the paper's library has memory for unexpected messages of its own
    /// ([`Network::credit`]), the library that of its default.
    fn config(&self, policy: Policy) -> Config {
        let default = Config::default();
        let credit = if policy.eager_max.is_some() { self.credit } else { default.credit };
        // What MAD-MPI sets.
        let early = if policy.eager_max.is_some() { 0 } else { default.credit };
        Config { strategy: "auto".into(), eager_max: policy.eager_max, credit, early, ..default }
    }
}

/// [`Network::credit`] of both networks. Assumed: as long as the longest message, so that pieces of several
/// of those run out of it, as the paper says (section 6.3).
const PEER_CREDIT: u64 = 8 << 20;

/// "The eager-limit on our platform cannot be pushed beyond 128Kb" (section 4.1), although 256 KB are set;
/// figure 8 has 64 KB.
pub const INFINIBAND: Network = Network {
    card: &FDR10,
    title: "InfiniBand",
    low_max: 64 << 10,
    default_max: 128 << 10,
    highest_max: 128 << 10,
    credit: PEER_CREDIT,
};
/// 256 KB unless set (figure 6), 512 KB at most (section 6.2).
const TEN_GIGABIT: Network = Network {
    card: &ETHERNET,
    title: "10 Gigabit",
    low_max: 256 << 10,
    default_max: 256 << 10,
    highest_max: 512 << 10,
    credit: PEER_CREDIT,
};
