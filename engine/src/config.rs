//! How an engine behaves: what its user may choose.

use crate::clock::Duration;
use crate::packet::PeerId;
use crate::schedule::feed::Feed;
use crate::schedule::registry::Registry;
use crate::transfer::congestion::Scheme;
use alloc::string::String;
use alloc::vec::Vec;

/// How an engine behaves. Every field has a default that is right without knowing the network.
#[derive(Debug, Clone)]
pub struct Config {
    /// Our own rank.
    pub me: PeerId,
    /// Name of the strategy for all peers.
    pub strategy: String,
    /// The strategies to choose from.
    pub registry: Registry,
    /// When rails are fed.
    pub feed: Feed,
    /// Longest message that is sent without asking, in bytes of data; cut to what packets hold. None: as the
    /// profile says, [`Config::EAGER_MAX`] without one.
    pub eager_max: Option<usize>,
    /// Data of at least this many bytes stays in place instead of being copied into the packet. None: as the
    /// profile says, [`Config::IN_PLACE_MIN`] without one.
    pub in_place_min: Option<usize>,
    /// Two things share a packet if the smaller has at most this many bytes. None: as the profile says,
    /// without one whenever both fit.
    pub aggregate_max: Option<usize>,
    /// Eager data that one peer may have here without a receive, in bytes.
    pub credit: u64,
    /// Longest chunk of a large message, in bytes; a rail gets no more at once.
    pub chunk: u64,
    /// Bandwidths of the rails in bytes per second, in the order in which they are added; used instead of
    /// the nominal ones. Missing or zero: nominal.
    pub bandwidths: Vec<u64>,
    /// What bounds the bytes in flight on lossy links.
    pub congestion: Scheme,
    /// Some transfers are timed, and correct the profiles of their rails.
    pub adapts: bool,
    /// How long a peer is waited for whose rails have all failed, if some of them may come back.
    pub return_within: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            me: PeerId(0),
            strategy: String::from("aggregate"),
            registry: Registry::default(),
            feed: Feed::default(),
            eager_max: None,
            in_place_min: None,
            aggregate_max: None,
            credit: 4 << 20,
            chunk: 1 << 20,
            bandwidths: Vec::new(),
            congestion: Scheme::default(),
            adapts: false,
            return_within: Duration::from_ms(3000),
        }
    }
}

impl Config {
    /// Longest message that is sent without asking when neither a setting nor a profile says it, in bytes.
    pub const EAGER_MAX: usize = 32 << 10;
    /// From how many bytes on data stays in place when neither a setting nor a profile says it.
    pub const IN_PLACE_MIN: usize = 16 << 10;
    /// From how many bytes on a block of non-contiguous data stays in place when no profile says it: a piece
    /// of an iovec costs the kernel about as much as copying this many bytes.
    pub const BLOCK_MIN: usize = 1 << 10;
    /// Least credit that makes sense, in bytes: a peer assumes this much before the first limit arrives.
    pub const CREDIT_MIN: u64 = crate::transfer::credit::INITIAL;
    /// Shortest chunk that makes sense, in bytes: each costs a rail an order and its answer.
    pub const CHUNK_MIN: u64 = 4 << 10;
}
