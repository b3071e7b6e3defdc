//! Replays of the decision whether the first message of a burst is held until the program waits.

use super::outcome::{Decision, Outcome};
use crate::clock::Instant;
use crate::observe::observation::{Observation, Observed};
use crate::observe::observation_text::Observations;
use crate::profile::estimate::burst::{Bursts, GAIN, LATE};
use alloc::vec::Vec;

/// Bursts before and after whose mean hindsight takes: a program that computes once in a thousand bursts
/// loses more by holding than it gains.
const AROUND: usize = 512;
/// A program that computes waits at most this long for the helper to send what was held.
const HELD_NS: u64 = 1_000_000;

/// Replays the decision; `None` without bursts. A burst that leaves at once costs a system call more; one
/// that is held costs what the program computes before it waits.
pub fn bursts(all: &Observations) -> Option<Outcome> {
    let seen: Vec<&Observation> = all.seen.iter().filter(|seen| seen.what == Observed::Burst).collect();
    let mut habit = Bursts::default();
    let (mut decisions, mut before) = (Vec::new(), false);
    for (place, burst) in seen.iter().enumerate() {
        let (took, computed) = (burst.ns, burst.which > 0);
        let begun = Instant::from_ns(burst.at.as_ns().saturating_sub(took));
        let is_held = habit.submitted(begun);
        let last = if computed { begun } else { burst.at };
        (1..burst.len).for_each(|_| _ = habit.submitted(begun));
        habit.returns(last);
        habit.ended(burst.at);
        let around = seen[place.saturating_sub(AROUND)..].iter().take(2 * AROUND + 1);
        let (mut held, mut at_once, mut all, mut count) = (0.0, 0.0, 0.0, 0.0);
        for burst in around {
            let is_late = burst.ns >= LATE.as_ns();
            held += if is_late { burst.ns.min(HELD_NS) as f64 } else { 0.0 };
            at_once += if is_late { 0.0 } else { f64::from(GAIN) * 1e3 };
            all += burst.ns.min(HELD_NS) as f64;
            count += 1.0;
        }
        let cost = |is_held: bool| (all + if is_held { held } else { at_once }) / count;
        decisions.push(Decision {
            at: burst.at,
            cost: cost(is_held),
            best: f64::min(cost(true), cost(false)),
            before: cost(before),
            is_switch: is_held != before,
            is_trial: false,
        });
        before = is_held;
    }
    Outcome::of(&decisions)
}
