//! Whether bodies that several rails carry together are carried as fast as predicted, and if not, whether one
//! rail alone is faster.
//!
//! A profile is of one rail by itself. Rails that together carry more than a core can copy, or a bus can
//! take, each do less than it says, and then a body that is shared out may take longer than on one rail (P2
//! section 3.2 has a bus of 2 GB/s). No measurement of one rail shows that, so it is learnt from what was
//! carried: where sharing out takes clearly longer than predicted one rail alone is tried, and the better of
//! the two is kept, for each class of length by itself; now and then the other one is tried again. Where the
//! prediction holds nothing is ever tried.

use crate::clock::Duration;

/// Classes of length: each twice as long as the one before.
const CLASSES: usize = 10;
/// The length with which the first class ends, in bytes.
const FIRST: u64 = 64 << 10;
/// Bodies that are carried together before that is doubted.
const ENOUGH: u32 = 4;
/// Sharing out is doubted when it takes this many times the predicted time.
const DOUBT: f32 = 1.33;
/// One body of this number goes the way that is not the better one.
const AGAIN: u32 = 64;
/// The other way has to be better by this factor.
const CLEARLY: f32 = 0.97;
/// A body that took this many times the usual time tells of something else.
const LATE: f32 = 4.0;
/// Weight of the latest in the mean.
const LATEST: f32 = 0.25;

/// Measurements of a peer's rails.
#[derive(Debug, Default)]
pub(super) struct Together {
    classes: [Class; CLASSES],
}

#[derive(Debug, Default)]
struct Class {
    turns: u32,
    /// Nanoseconds per byte: as it was together, as it was alone. Zero: not known.
    together: f32,
    alone: f32,
}

impl Together {
    /// Whether a body of `len` bytes, which together would take `predicted`, shall go over one rail.
    pub(super) fn prefers_alone(&mut self, len: u64, predicted: Duration) -> bool {
        let class = self.class(len);
        class.turns = class.turns.wrapping_add(1);
        let doubted = class.turns > ENOUGH && class.together > DOUBT * per_byte(len, predicted);
        let better = class.alone > 0.0 && class.alone < CLEARLY * class.together;
        let tries = class.turns.is_multiple_of(AGAIN);
        match better {
            true => !tries,
            false => doubted && (tries || class.alone == 0.0),
        }
    }

    /// The rails have changed: earlier transfers over several of them say nothing any more.
    pub(super) fn forget(&mut self) {
        *self = Together::default();
    }

    /// A body was carried by `rails` rails in this time.
    pub(super) fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        let class = self.class(len);
        let known = if rails > 1 { &mut class.together } else { &mut class.alone };
        let latest = per_byte(len, took);
        if *known == 0.0 {
            *known = latest;
        } else if latest < LATE * *known {
            *known += LATEST * (latest - *known);
        }
    }

    fn class(&mut self, len: u64) -> &mut Class {
        &mut self.classes[((len / FIRST).max(1).ilog2() as usize).min(CLASSES - 1)]
    }
}

fn per_byte(len: u64, time: Duration) -> f32 {
    time.as_ns() as f32 / len.max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 256 << 10;

    /// Of 1,000 bodies, how many go over one rail, if they take these times.
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
    fn what_holds_is_not_doubted() {
        assert_eq!(alone(&mut Together::default(), [100_000, 120_000, 90_000]), 0);
    }

    #[test]
    fn the_better_way_is_kept_and_the_other_tried_now_and_then() {
        let slower = alone(&mut Together::default(), [28_000, 50_000, 40_000]);
        assert!((950..1000).contains(&slower), "{slower}");
        let faster = alone(&mut Together::default(), [28_000, 50_000, 60_000]);
        assert!((1..50).contains(&faster), "{faster}");
    }

    #[test]
    fn a_change_is_found() {
        let mut known = Together::default();
        alone(&mut known, [28_000, 50_000, 40_000]);
        let after = alone(&mut known, [28_000, 28_000, 40_000]);
        assert!(after < 500, "{after}");
    }

    #[test]
    fn lengths_are_learnt_apart() {
        let mut known = Together::default();
        alone(&mut known, [28_000, 50_000, 40_000]);
        assert!(!known.prefers_alone(8 * LEN, Duration::from_ns(28_000)));
    }
}
