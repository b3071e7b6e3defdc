//! How much time a measurement takes, and how closely it looks.

/// Effort of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Time for all probes, in nanoseconds.
    pub budget_ns: u64,
    /// Ratio of one size to the next, before refinement.
    pub ratio: u64,
    /// Ratio of the sizes around a crossing, after refinement.
    pub refined: f64,
    /// Rounds in which each point is visited.
    pub rounds: u32,
    /// Smallest and largest number of repetitions per visit.
    pub repetitions: (u32, u32),
    /// Largest relative difference between the visit that counts and the one that confirms it.
    pub tolerance: f64,
}

impl Effort {
    /// For the first use of a rail: about a third of a second.
    pub const QUICK: Effort = Effort {
        budget_ns: 300_000_000,
        ratio: 4,
        refined: 1.4,
        rounds: 3,
        repetitions: (3, 15),
        tolerance: 0.05,
    };
    /// For measurements that the user starts.
    pub const FULL: Effort = Effort {
        budget_ns: 10_000_000_000,
        ratio: 2,
        refined: 1.1,
        rounds: 5,
        repetitions: (7, 60),
        tolerance: 0.02,
    };
}
