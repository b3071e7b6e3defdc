//! Settings of the user, which override measurements.

use crate::config::Config;
use crate::packet::PeerId;

/// Thresholds set by the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed {
    pub(crate) eager_max: Option<usize>,
    pub(crate) in_place_min: Option<usize>,
    pub(crate) aggregate_max: Option<usize>,
    adapts: bool,
}

impl Fixed {
    /// Returns the settings for one peer. Messages of a process to itself cross no network, so nothing is
    /// learnt from them.
    pub(crate) fn of(config: &Config, peer: PeerId) -> Fixed {
        let Config { eager_max, in_place_min, aggregate_max, adapts, me, .. } = *config;
        Fixed { eager_max, in_place_min, aggregate_max, adapts: adapts && peer != me }
    }

    /// Whether transfers correct the profiles of rails.
    pub(crate) fn adapts(&self) -> bool {
        self.adapts
    }

    /// Whether the user has set the smallest length of data sent in place.
    pub(crate) fn has_in_place_min(&self) -> bool {
        self.in_place_min.is_some()
    }

    /// Whether the user has set the eager limit.
    pub(crate) fn has_eager_max(&self) -> bool {
        self.eager_max.is_some()
    }
}
