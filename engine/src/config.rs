//! Configuration of an engine: the settings of its user.

use crate::clock::Duration;
use crate::packet::PeerId;
use crate::schedule::feed::Feed;
use crate::schedule::preempt::Preempt;
use crate::schedule::registry::Registry;
use crate::transfer::congestion::Scheme;
use alloc::string::String;
use alloc::vec::Vec;

/// Configuration of an engine. Every field has a default that suits any network.
#[derive(Debug, Clone)]
pub struct Config {
    /// Rank of this process.
    pub me: PeerId,
    /// Name of the strategy for all peers.
    pub strategy: String,
    /// The registry of strategies.
    pub registry: Registry,
    /// When rails are given packets.
    pub feed: Feed,
    /// Longest eager message in bytes of data, limited to the packet length. `None`: from the profile;
    /// without one [`Config::EAGER_MAX`].
    pub eager_max: Option<usize>,
    /// Data of at least this many bytes is sent in place instead of being copied into the packet. `None`:
    /// from the profile; without one [`Config::IN_PLACE_MIN`].
    pub in_place_min: Option<usize>,
    /// Two entries share a packet only if the smaller has at most this many bytes. `None`: from the
    /// profile; without one they share whenever both fit.
    pub aggregate_max: Option<usize>,
    /// Eager data that one peer may have stored here without a posted receive, in bytes.
    pub credit: u64,
    /// Bytes of blocking sends that may be copied so that the calls return before their receivers answer;
    /// zero: none. The layer above must wait before it leaves until
    /// [`Inspect::early_bytes`](crate::Inspect::early_bytes) is zero.
    pub early: u64,
    /// Longest chunk of a large message, in bytes; a rail gets no more at once.
    pub chunk: u64,
    /// Bandwidths of the rails in bytes per second, in the order in which rails are added; used instead of
    /// the nominal ones. Missing or zero: nominal.
    pub bandwidths: Vec<u64>,
    /// Congestion control scheme of lossy links.
    pub congestion: Scheme,
    /// When a core that computes is preempted to post a part of a message.
    pub preempt: Preempt,
    /// Time some transfers and correct the profiles of their rails by them.
    pub adapts: bool,
    /// How long a peer is kept whose rails have all failed, if some of them may come back.
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
            early: 0,
            chunk: 1 << 20,
            bandwidths: Vec::new(),
            congestion: Scheme::default(),
            preempt: Preempt::default(),
            adapts: false,
            return_within: Duration::from_ms(3000),
        }
    }
}

impl Config {
    /// Longest eager message in bytes, without a setting or a profile.
    pub const EAGER_MAX: usize = 32 << 10;
    /// Smallest length of data sent in place, in bytes, without a setting or a profile.
    pub const IN_PLACE_MIN: usize = 16 << 10;
    /// Smallest length of a block of non-contiguous data sent in place, in bytes, without a profile: a
    /// piece of an iovec costs the kernel about as much as copying this many bytes.
    pub const BLOCK_MIN: usize = 1 << 10;
    /// Smallest useful credit in bytes: a peer assumes this much before the first limit arrives.
    pub const CREDIT_MIN: u64 = crate::transfer::credit::INITIAL;
    /// Smallest useful chunk in bytes: each chunk costs a rail an order and its report.
    pub const CHUNK_MIN: u64 = 4 << 10;
}
