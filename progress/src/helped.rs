//! What the helper is doing, and what it has done.

use crate::setting::Progress;

/// Present activity of the helper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Doing {
    /// Sleeps until something is submitted.
    #[default]
    Rests,
    /// Turns the pump at intervals.
    Ticks,
    /// Sleeps until a rail has an event.
    Watches,
    /// Turns the pump all the time.
    Polls,
    /// Polls for work that other threads hand to it.
    StandsBy,
}

/// Decisions and counters of the helper.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Helped {
    /// The setting in force.
    pub setting: Progress,
    /// Cores that the process may use; empty if the system does not say.
    pub allowed: Vec<usize>,
    /// Cores of these on which the helper may run now: idle ones, or its dedicated ones.
    pub cores: Vec<usize>,
    /// Oversubscribed (more ranks than cores): the helper yields to the ranks.
    pub gives_way: bool,
    /// The present activity.
    pub doing: Doing,
    /// Helping is suspended because it cost more than it gained.
    pub is_suspended: bool,
    /// Number of suspensions.
    pub suspensions: u64,
    /// Turns of the pump by the helper.
    pub turns: u64,
    /// Turns of these that moved something while the application computed.
    pub moved: u64,
    /// Posts to a rail that the helper did for a thread in a call.
    pub posted: u64,
    /// Posts to a rail for which a thread of the application that computes was preempted.
    pub preempted: u64,
    /// Large copies, packings and reductions of other threads of which the helper or a worker did a part.
    pub shared: u64,
    /// Time of all of this in nanoseconds, which the application saved.
    pub given_ns: u64,
    /// Processor time of the helper between reviews, in nanoseconds.
    pub spent_ns: u64,
    /// Time for which the application's threads waited for a core between reviews, in nanoseconds.
    pub delayed_ns: u64,
}
