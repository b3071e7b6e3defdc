//! Who has a core, and what ranks have to do there.

use std::collections::VecDeque;

/// What a rank has had of its core.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    /// Of its slice.
    pub(super) used_ns: u64,
    /// It has been given the core, and has not looked at its rails since.
    pub(super) is_given: bool,
}

/// A core and the ranks that want it.
#[derive(Debug, Clone, Default)]
pub(super) struct Core {
    pub(super) running: Option<usize>,
    /// Since when.
    pub(super) since: u64,
    /// Others that are ready.
    pub(super) ready: VecDeque<usize>,
    /// The tick at which the system looks next whether the slice is used.
    pub(super) looks_ns: u64,
}

/// What a rank has to compute, or to do in a call, before it goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    pub(super) left_ns: u64,
    /// Since when it is at it; none: it has no core.
    pub(super) since: Option<u64>,
    /// Counts turns: an end that was foreseen for an earlier one is none.
    pub(super) turn: u64,
}
