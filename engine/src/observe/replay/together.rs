//! Replays of the decision whether a large message is split over all rails or goes over one alone.

use super::outcome::{Decision, Outcome};
use crate::clock::Duration;
use crate::observe::observation::{Observation, Observed};
use crate::observe::observation_text::Observations;
use crate::schedule::together::Together;
use alloc::vec::Vec;

/// Messages before and after, of each choice, whose median hindsight takes.
const AROUND: usize = 16;

/// Replays the decision; `None` unless the trace has messages of one length that were split and others over
/// one rail.
pub fn together(all: &Observations) -> Option<Outcome> {
    let is_it = |seen: &&Observation| seen.what == Observed::Carried && seen.ns > 0;
    let bodies: Vec<&Observation> = all.seen.iter().filter(is_it).collect();
    let mut known = Together::default();
    let (mut decisions, mut before) = (Vec::new(), false);
    for (place, seen) in bodies.iter().enumerate().filter(|(_, seen)| seen.which > 1) {
        let near = |is_split: bool| near(&bodies, place, is_split);
        let Some((split, alone)) = near(true).zip(near(false)) else { continue };
        let is_alone = known.prefers_alone(seen.len, Duration::from_ns(seen.other_ns));
        let took = if is_alone { alone.0 } else { seen.ns };
        known.carried(seen.len, if is_alone { 1 } else { 2 }, Duration::from_ns(took));
        let is_trial = known.is_trial(seen.len);
        let cost = |is_alone: bool| if is_alone { alone.1 } else { split.1 };
        decisions.push(Decision {
            at: seen.at,
            cost: cost(is_alone),
            best: f64::min(split.1, alone.1),
            before: cost(before),
            is_switch: is_alone != before,
            is_trial,
        });
        before = if is_trial { before } else { is_alone };
    }
    Outcome::of(&decisions)
}

/// Returns the time of the next body of this length that was split, or went over one rail; and the median of
/// those around it.
fn near(bodies: &[&Observation], place: usize, is_split: bool) -> Option<(u64, f64)> {
    let is_it = |seen: &&&Observation| (seen.which > 1) == is_split && seen.len == bodies[place].len;
    let (behind, ahead) = bodies.split_at(place);
    let later = ahead.iter().filter(is_it).take(AROUND);
    let mut times: Vec<u64> =
        later.chain(behind.iter().rev().filter(is_it).take(AROUND)).map(|b| b.ns).collect();
    let next = *times.first()?;
    times.sort_unstable();
    Some((next, times[times.len() / 2] as f64))
}
