//! Decisions beside those of hindsight.

use crate::clock::{Duration, Instant};

/// A decision that costs this many times as much as the other one is worse; less is noise.
const WORSE: f64 = 1.03;
/// A decision that costs this many times as much as the best one counts as not having followed a change
/// yet.
const BEHIND: f64 = 1.1;

/// Fewer decisions say nothing.
const LEAST: usize = 16;

/// A decision and what hindsight says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decision {
    pub(super) at: Instant,
    /// The true cost of what was chosen, and that of the best choice.
    pub(super) cost: f64,
    pub(super) best: f64,
    /// The true cost of what was chosen before.
    pub(super) before: f64,
    /// It differs from what was chosen before.
    pub(super) is_switch: bool,
    /// The other alternative was taken in order to observe it.
    pub(super) is_trial: bool,
}

/// How good the decisions of one estimator were on one trace.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outcome {
    /// Number of decisions.
    pub decisions: u32,
    /// Mean cost beyond that of the best decisions, relative to it: 0.03 for 3 %. Trials are included.
    pub regret: f64,
    /// Changes of the decision, without trials.
    pub switches: u32,
    /// Those of them that made it worse by more than 3 %.
    pub false_switches: u32,
    /// The longest time during which all decisions cost more than 10 % too much: how long a change was not
    /// followed.
    pub behind: Duration,
    /// The decisions in that time.
    pub behind_decisions: u32,
}

impl Outcome {
    /// Judges decisions; `None` if there are few.
    pub(super) fn of(decisions: &[Decision]) -> Option<Outcome> {
        let (first, count) = (decisions.first().filter(|_| decisions.len() >= LEAST)?, decisions.len());
        let mut outcome = Outcome { decisions: count as u32, ..Outcome::default() };
        let (mut begun, mut run) = (first.at, 0);
        let (mut costs, mut least) = (0.0, 0.0);
        for decision in decisions {
            costs += decision.cost;
            least += decision.best;
            if decision.is_trial {
                continue;
            }
            outcome.switches += u32::from(decision.is_switch);
            let is_worse = decision.cost > WORSE * decision.before;
            outcome.false_switches += u32::from(decision.is_switch && is_worse);
            if decision.cost <= BEHIND * decision.best {
                (begun, run) = (decision.at, 0);
                continue;
            }
            run += 1;
            if run > outcome.behind_decisions {
                (outcome.behind, outcome.behind_decisions) = (decision.at.since(begun), run);
            }
        }
        outcome.regret = costs / f64::max(least, f64::MIN_POSITIVE) - 1.0;
        Some(outcome)
    }
}
