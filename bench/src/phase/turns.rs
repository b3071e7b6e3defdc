//! The state of cores that ranks share, and of the work of ranks.

use std::collections::VecDeque;

/// How a rank has used its core.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SliceUse {
    /// Nanoseconds of its slice that it has used.
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

/// Work of a core, calculation or a part of a call, that a rank has to do before it goes on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    pub(super) left_ns: u64,
    /// When it began in this turn; none: it has no core.
    pub(super) since: Option<u64>,
    /// Number of the turn. An end that was scheduled in an earlier turn does not count.
    pub(super) turn: u64,
}
