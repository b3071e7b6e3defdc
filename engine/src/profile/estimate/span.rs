//! The median of the observations of a time, each with a weight, and how sure it is.
//!
//! The median lies between two observations whose places are some standard errors before and after the
//! middle (a confidence interval by order statistics; no distribution is assumed). Weights: of observations
//! that cover different numbers of bytes, the long ones say more. The number that counts for the standard
//! error is then (sum of weights)^2 / sum of their squares (Kish, "Survey sampling", 1965).

use crate::clock::{Duration, Instant};
use alloc::collections::VecDeque;

// The experiments are those of `nmad sim --golden decisions`: the regret of splits over rails is 9.6 %, with
// 4 false switches.

/// How long an observation counts. The speed of the rails of a busy host wanders within seconds: half of it
/// has a regret of 11.1 % and 13 false switches, twice 10.4 % and 3.
pub(crate) const SPAN: Duration = Duration::from_ms(500);
/// Most observations that count: half has a regret of 9.9 % and 8 false switches, twice decides alike.
const MOST: usize = 64;
/// Fewer observations say nothing, and this number is kept however old they are: half has a regret of 9.5 %
/// and 5 false switches, twice 11.1 % and 3.
const LEAST: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen {
    at: Instant,
    value: f32,
    weight: f32,
}

/// The observations of the last time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Span {
    seen: VecDeque<Seen>,
}

impl Span {
    /// Adds an observation.
    pub(crate) fn note(&mut self, at: Instant, value: f64, weight: f64) {
        let is_old = |seen: &Seen| at.since(seen.at) > SPAN;
        while self.seen.len() >= MOST || (self.seen.len() >= LEAST && self.seen.front().is_some_and(is_old)) {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen { at, value: value as f32, weight: weight as f32 });
    }

    /// Returns the number of observations that count.
    pub(crate) fn count(&self) -> usize {
        self.seen.len()
    }

    /// Drops all observations but the last ones.
    pub(crate) fn keep(&mut self, last: usize) {
        self.seen.drain(..self.seen.len().saturating_sub(last));
    }

    /// Returns the interval of `errors` standard errors around the median of the last `last` observations;
    /// `None` with fewer than [`LEAST`].
    pub(crate) fn median_within(&self, last: usize, errors: f64) -> Option<(f64, f64)> {
        let skip = self.seen.len().saturating_sub(last);
        let mut sorted = [(0.0_f32, 0.0_f32); MOST];
        let sorted = &mut sorted[..self.seen.len() - skip];
        if sorted.len() < LEAST {
            return None;
        }
        for (place, seen) in sorted.iter_mut().zip(self.seen.iter().skip(skip)) {
            *place = (seen.value, seen.weight);
        }
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (sum, squares) = sorted.iter().fold((0.0, 0.0), |(sum, squares), &(_, weight)| {
            (sum + f64::from(weight), squares + f64::from(weight) * f64::from(weight))
        });
        // In millionths, since there is no square root of a fraction without the standard library.
        let part = (1e12 * squares / (sum * sum)) as u64;
        let off = errors / 2.0 * part.isqrt() as f64 / 1e6;
        let at = |part: f64| {
            let mut below = 0.0;
            let reaches = |&&(_, weight): &&(f32, f32)| {
                below += f64::from(weight);
                below >= part * sum
            };
            sorted.iter().find(reaches).or(sorted.last()).map(|&(value, _)| f64::from(value))
        };
        at((0.5 - off).max(0.0)).zip(at((0.5 + off).min(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn the_median_lies_between_the_places_that_its_error_says() {
        let mut span = Span::default();
        for ms in 0..7 {
            span.note(at(ms), ms as f64, 1.0);
        }
        assert_eq!(span.median_within(MOST, 1.0), None, "few");
        (7..16).for_each(|ms| span.note(at(ms), ms as f64, 1.0));
        assert_eq!(span.median_within(MOST, 0.0), Some((7.0, 7.0)));
        assert_eq!(span.median_within(MOST, 2.0), Some((3.0, 11.0)), "a quarter on each side");
        assert_eq!(span.median_within(8, 0.0), Some((11.0, 11.0)), "of the last ones");
        span.note(at(16), 100.0, 30.0);
        assert_eq!(span.median_within(MOST, 0.0), Some((100.0, 100.0)), "it weighs more than all others");
        let (low, _) = span.median_within(MOST, 1.0).expect("enough");
        assert!(low < 10.0, "it is but one");
    }

    #[test]
    fn old_observations_are_dropped_unless_few_are_left() {
        let mut span = Span::default();
        (0..200).for_each(|ms| span.note(at(ms), 1.0, 1.0));
        assert_eq!(span.count(), MOST);
        span.note(at(10_000), 2.0, 1.0);
        assert_eq!(span.count(), LEAST);
        span.keep(3);
        assert_eq!(span.count(), 3);
    }
}
