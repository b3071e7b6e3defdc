//! Settings of the user, which override measurements.

use crate::config::Config;
use crate::packet::PeerId;
use crate::schedule::preempt::Preempt;

/// Thresholds set by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) eager_max: Option<usize>,
    pub(crate) in_place_min: Option<usize>,
    pub(crate) aggregate_max: Option<usize>,
    /// Transfers correct the profiles of rails.
    pub(crate) adapts: bool,
    /// When cores that compute are preempted.
    pub(crate) preempt: Preempt,
}

impl Fixed {
    /// Returns the settings for one peer. Messages of a process to itself cross no network, so nothing is
    /// learnt from them.
    pub(crate) fn of(config: &Config, peer: PeerId) -> Fixed {
        let Config { eager_max, in_place_min, aggregate_max, adapts, preempt, me, .. } = *config;
        Fixed { eager_max, in_place_min, aggregate_max, adapts: adapts && peer != me, preempt }
    }
}
