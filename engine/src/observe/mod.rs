//! Observation: transfer times, late receivers, silent links, and on demand a receipt for each message.
//! Observations choose protocols and thresholds through [`crate::engine`]; reading them changes nothing.

pub(crate) mod in_force;
pub(crate) mod late;
pub(crate) mod lateness;
pub(crate) mod learn;
pub(crate) mod observation;
pub(crate) mod observation_text;
pub(crate) mod receipt;
pub(crate) mod record;
pub mod replay;
pub(crate) mod traffic;
pub(crate) mod watch;
pub(crate) mod watched;

use crate::clock::Instant;
pub(crate) use lateness::Lateness;

/// Observations of all peers.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    /// Peers with several links, of which the engine may give up one.
    pub(crate) watched: watched::Watched,
    /// Receipts of messages; `None`: not recorded.
    pub(crate) receipts: Option<alloc::boxed::Box<receipt::Receipts>>,
    /// What the estimators are told; `None`: not recorded.
    pub(crate) observations: Option<alloc::boxed::Box<observation::Recorded>>,
}

/// State of learning about the rails to a peer ([`learn`]).
#[derive(Debug, Default)]
pub(crate) struct LearningState {
    /// There is something to learn: messages carry queries and use methods that are insufficiently known.
    pub(crate) is_active: bool,
    /// Messages in a row without anything to learn.
    pub(crate) settled: u32,
    /// Checks of the measured profiles.
    pub(crate) checks: u32,
    /// Until when messages wait for the answers to empty queries on new rails.
    pub(crate) waits_until: Instant,
}
