//! The thresholds in force for messages to a peer, and their origin.

use crate::clock::Instant;
use crate::engine::Inspect;
use crate::engine::peer::Peer;
use crate::packet::{PeerId, RailId};
use crate::profile::threshold::Thresholds;
use crate::transfer::link::Link;
use alloc::vec::Vec;

/// Origin of the thresholds of a rail to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdOrigin {
    /// The rail was not measured: defaults.
    Nominal,
    /// A sampling pass.
    Sampled,
    /// A profile made or corrected by transfers.
    Learnt {
        /// When the profile was first corrected.
        since: Instant,
        /// Number of observed transfers and answers.
        count: u32,
    },
}

impl ThresholdOrigin {
    /// Returns the name for programs.
    pub fn name(self) -> &'static str {
        match self {
            ThresholdOrigin::Nominal => "nominal",
            ThresholdOrigin::Sampled => "sampled",
            ThresholdOrigin::Learnt { .. } => "learnt",
        }
    }
}

/// The thresholds of one rail to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailInForce {
    /// The rail.
    pub rail: RailId,
    /// Their origin.
    pub origin: ThresholdOrigin,
    /// The thresholds in force. `rendezvous_min` and `push_min` are those of the rail as a single rail; see
    /// [`InForce::eager_max`] for all rails together.
    pub thresholds: Thresholds,
}

/// Limits and thresholds in force for messages to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Longest eager message in bytes, over all open rails.
    pub eager_max: usize,
    /// The user has set the eager limit.
    pub is_eager_max_set: bool,
    /// The user has set the smallest length of data sent in place.
    pub is_in_place_min_set: bool,
    /// Lengths of messages that the peer reads from our memory, from the first number to below the second;
    /// none, if the first is not below the second.
    pub reads: (u64, u64),
    /// The open rails.
    pub rails: Vec<RailInForce>,
}

impl Inspect<'_> {
    /// Returns the thresholds in force for messages to a peer; `None`: the peer is unknown.
    pub fn in_force(self, peer: PeerId) -> Option<InForce> {
        self.with_peer(peer, |peer| {
            let open = peer.used().map(|(_, link)| link).filter(|link| link.is_up());
            InForce {
                eager_max: peer.way.eager_max,
                is_eager_max_set: peer.fixed.eager_max.is_some(),
                is_in_place_min_set: peer.fixed.in_place_min.is_some(),
                reads: peer.way.read_lens,
                rails: open.map(|link| of(peer, link)).collect(),
            }
        })
    }
}

fn of(peer: &Peer, link: &Link) -> RailInForce {
    let origin = match link.learning.as_ref().and_then(|learning| learning.taught()) {
        Some((since, count)) => ThresholdOrigin::Learnt { since, count },
        None if link.forecast.is_measured() => ThresholdOrigin::Sampled,
        None => ThresholdOrigin::Nominal,
    };
    let bytes = |value: usize| if value == usize::MAX { u64::MAX } else { value as u64 };
    let own = link.forecast.profile().thresholds();
    let thresholds = Thresholds {
        in_place_min: bytes(link.in_place_min),
        rendezvous_min: own.map_or(bytes(peer.way.eager_max) + 1, |own| own.rendezvous_min),
        read_min: own.map_or(u64::MAX, |own| own.read_min),
        read_max: own.map_or(u64::MAX, |own| own.read_max),
        push_min: own.map_or(u64::MAX, |own| own.push_min),
        aggregate_max: bytes(link.aggregate_max),
        block_min: bytes(link.block_min),
        chunk_min: link.forecast.chunk_min(),
    };
    RailInForce { rail: link.rail, origin, thresholds }
}
