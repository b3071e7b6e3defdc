//! Learns whether bodies split over several rails are carried as fast as predicted, and if not, whether one
//! rail alone is faster.
//!
//! A profile describes a single rail. If all rails together carry more than a core can copy or a bus can
//! carry, each is slower than its profile, and a split body may take longer than on one rail (P2 section
//! 3.2 has a bus of 2 GB/s). No measurement of one rail shows this, so it is learnt from transfers: if
//! split bodies take clearly longer than predicted, one rail alone is tried, and the better choice is kept,
//! separately for each class of length. The base costs of both choices are compared
//! ([`crate::profile::estimate`]), since on a busy host any body may take long. One of `AGAIN` bodies uses
//! the other choice. If the prediction holds, nothing is tried.

use crate::clock::Duration;
use crate::profile::estimate::window::Window;

/// Number of classes of length, each twice as long as the one before.
const CLASSES: usize = 10;
/// End of the first class, in bytes.
const FIRST: u64 = 64 << 10;
/// Number of recent bodies of each choice that are compared.
const LAST: usize = 5;
/// The split is doubted if it takes this many times the predicted time.
const DOUBT: f64 = 1.33;
/// One of this many bodies uses the choice that is not the better one.
const AGAIN: u32 = 64;
/// Factor by which the other choice must be better.
const CLEARLY: f64 = 0.97;

/// Observations of a peer's rails.
#[derive(Debug, Default)]
pub(crate) struct Together {
    classes: [Class; CLASSES],
}

#[derive(Debug, Default)]
struct Class {
    turns: u32,
    is_trial: bool,
    /// Nanoseconds per byte of split bodies, and of those on one rail.
    together: Window<LAST>,
    alone: Window<LAST>,
}

impl Together {
    /// Whether a body of `len` bytes, predicted to take `predicted` when split, should use one rail.
    pub(crate) fn prefers_alone(&mut self, len: u64, predicted: Duration) -> bool {
        let class = self.class(len);
        class.turns = class.turns.wrapping_add(1);
        let together = class.together.low().filter(|_| class.together.is_full());
        let doubted = together.is_some_and(|took| took > DOUBT * per_byte(len, predicted));
        let alone = class.alone.low();
        let better = alone.zip(together).is_some_and(|(alone, together)| alone < CLEARLY * together);
        let tries = class.turns.is_multiple_of(AGAIN);
        let is_doubtful = doubted && (tries || alone.is_none());
        class.is_trial = if better { tries } else { is_doubtful };
        if better { !tries } else { is_doubtful }
    }

    /// Whether the last decision about this length was made only to observe the choice that is not better.
    pub(crate) fn is_trial(&mut self, len: u64) -> bool {
        self.class(len).is_trial
    }

    /// Drops all observations after a change of the rails.
    pub(crate) fn forget(&mut self) {
        *self = Together::default();
    }

    /// Adds a body that `rails` rails carried in this time.
    pub(crate) fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        let class = self.class(len);
        let known = if rails > 1 { &mut class.together } else { &mut class.alone };
        known.note(per_byte(len, took));
    }

    fn class(&mut self, len: u64) -> &mut Class {
        &mut self.classes[((len / FIRST).max(1).ilog2() as usize).min(CLASSES - 1)]
    }
}

fn per_byte(len: u64, time: Duration) -> f64 {
    time.as_ns() as f64 / len.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 256 << 10;

    /// Returns how many of 1,000 bodies use one rail, if bodies take these times.
    fn alone(known: &mut Together, [predicted, together, alone]: [u64; 3]) -> usize {
        let mut one = || {
            let single = known.prefers_alone(LEN, Duration::from_ns(predicted));
            let (rails, took) = if single { (1, alone) } else { (2, together) };
            known.carried(LEN, rails, Duration::from_ns(took));
            single
        };
        (0..1000).map(|_| one()).filter(|single| *single).count()
    }

    #[test]
    fn a_prediction_that_holds_is_not_doubted() {
        assert_eq!(alone(&mut Together::default(), [100_000, 120_000, 90_000]), 0);
    }

    #[test]
    fn the_better_choice_is_kept_and_the_other_tried_now_and_then() {
        let slower = alone(&mut Together::default(), [28_000, 50_000, 40_000]);
        assert!((950..1000).contains(&slower), "{slower}");
        let faster = alone(&mut Together::default(), [28_000, 50_000, 60_000]);
        assert!((1..50).contains(&faster), "{faster}");
    }

    #[test]
    fn a_change_is_detected() {
        let mut known = Together::default();
        alone(&mut known, [28_000, 50_000, 40_000]);
        let after = alone(&mut known, [28_000, 28_000, 40_000]);
        assert!(after < 500, "{after}");
    }

    #[test]
    fn classes_of_length_are_independent() {
        let mut known = Together::default();
        alone(&mut known, [28_000, 50_000, 40_000]);
        assert!(!known.prefers_alone(8 * LEN, Duration::from_ns(28_000)));
    }
}
