//! Replays of the decision whether a large message asks its receiver first, or goes eagerly.

use super::outcome::{Decision, Outcome};
use crate::observe::lateness::Lateness;
use crate::observe::observation::{Observation, Observed};
use crate::observe::observation_text::Observations;
use alloc::vec::Vec;

/// Waits before and after whose mean hindsight takes.
const AROUND: usize = 8;

/// Replays the decision; `None` without waits. In the trace all messages ask (`NMAD_EAGER_MAX`), so that all
/// waits are known; the replay tells the estimator only the waits of those that it would have let ask.
pub fn late(all: &Observations) -> Option<Outcome> {
    let waits: Vec<&Observation> = all.seen.iter().filter(|seen| seen.what == Observed::Waited).collect();
    let mut lateness = Lateness::default();
    let mut decisions = Vec::new();
    let mut before = false;
    for (place, seen) in waits.iter().enumerate() {
        let is_eager = lateness.prefers_eager(false, || seen.other_ns);
        let is_trial = !is_eager && lateness.is_probe_due();
        match is_eager {
            true => lateness.sent_eagerly(),
            false => {
                lateness.used_rendezvous();
                lateness.measured(Some(seen.ns), 0);
            }
        }
        let around = waits[place.saturating_sub(AROUND)..].iter().take(2 * AROUND + 1);
        let (sum, count) = around.fold((0, 0), |(sum, count), wait| (sum + wait.ns, count + 1));
        let (asks, copies) = (sum as f64 / f64::from(count), seen.other_ns as f64);
        let carries = carries_ns(all, seen.len);
        let cost = |eager: bool| carries + if eager { copies } else { asks };
        decisions.push(Decision {
            at: seen.at,
            cost: cost(is_eager),
            best: carries + asks.min(copies),
            before: cost(before),
            is_switch: is_eager != before,
            is_trial,
        });
        before = if is_trial { before } else { is_eager };
    }
    Outcome::of(&decisions)
}

/// Returns the nanoseconds that the rails need for a message in quiet.
fn carries_ns(all: &Observations, len: u64) -> f64 {
    let rates = all.rails.iter().flatten().map(|profile| len as f64 / profile.body().ns(len).max(1) as f64);
    len as f64 / rates.sum::<f64>().max(1e-3)
}
