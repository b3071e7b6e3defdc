//! The last few factors of one kind of transfer: observed time relative to expected time.
//!
//! The lowest factor counts: a receiver that polls late makes a transfer seem slow, and nothing makes one
//! seem fast. So a faster network is believed at once, a slower one when all stored factors agree, and some
//! late answers change nothing. If one factor comes from several transfers, the median counts: of two
//! successive transfers the second seems fast if the answer to the first was late.

use super::estimate::window::Window;

/// Number of stored factors, where each comes from one transfer, and where each comes from several: beside
/// other programs, a third of the latter are late, and in rows. Half and twice of the latter decide the jobs
/// of `nmad sim --golden decisions` alike.
const KEPT: usize = 5;
pub(super) const KEPT_OF_MANY: usize = 15;
/// Observations after which a kind of transfer counts as known.
pub(super) const ENOUGH: u32 = 3;
/// A relative change of the value above this is news.
const NEWS: f64 = 0.03;
/// A relative change above this means that the network has changed.
const CHANGE: f64 = 0.2;

/// Observations within this factor of each other agree: a network delays all transfers alike, a receiver
/// that polls late delays each differently.
const AGREEMENT: f64 = 1.3;

/// Result of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learnt {
    /// The value is as known before.
    Nothing,
    /// A point is known better: derive the profile again.
    News,
    /// The network has changed: measure all methods again.
    Change,
}

/// The last factors of one kind of transfer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recent<const N: usize = KEPT> {
    factors: Window<N>,
    /// Attempts to observe it since an observation was last wanted.
    attempts: u32,
    /// The factor that the profile in use includes; zero: none.
    used: f32,
    /// Another observation is wanted.
    doubted: bool,
    /// Length of the last transfer in bytes.
    pub(super) len: u64,
}

impl<const N: usize> Recent<N> {
    /// Each factor comes from several transfers, so the median counts.
    const IS_MEDIAN: bool = N == KEPT_OF_MANY;

    /// Creates it without observations; `is_expected`: the profile in use expects a factor of one.
    pub(super) fn new(is_expected: bool) -> Self {
        Recent { used: if is_expected { 1.0 } else { 0.0 }, ..Recent::default() }
    }

    /// Returns the number of observations, including those no longer stored.
    pub(super) fn count(&self) -> u32 {
        self.factors.count()
    }

    /// Returns the number of attempts to observe it.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Counts an attempt to observe it.
    pub(super) fn attempt(&mut self) {
        self.attempts += 1;
    }

    /// Whether fewer than `enough` observations exist or another one is wanted, and fewer than
    /// `attempts_max` attempts were made.
    pub(super) fn wants(&self, enough: u32, attempts_max: u32) -> bool {
        (self.doubted || self.count() < enough) && self.attempts < attempts_max
    }

    /// Adds an observation and returns its consequence.
    pub(super) fn note(&mut self, factor: f64) -> Learnt {
        self.factors.note(factor);
        let is_used = self.used > 0.0;
        // If it differs from the known value, further observations decide whether that was chance.
        self.doubted = is_used && apart(factor, self.used) > CHANGE;
        let moved = self.value().map_or(0.0, |value| if is_used { apart(value, self.used) } else { 1.0 });
        match moved {
            moved if is_used && moved > CHANGE => Learnt::Change,
            moved if moved > NEWS && self.count() >= 2 => Learnt::News,
            _ => Learnt::Nothing,
        }
    }

    /// Resets the number of attempts.
    pub(super) fn retry(&mut self) {
        self.attempts = 0;
    }

    /// Requests another observation if the value is known, and resets the number of attempts.
    pub(super) fn recheck(&mut self) {
        if self.count() > 0 {
            (self.doubted, self.attempts) = (true, 0);
        }
    }

    /// Returns the last factor; zero without any.
    pub(super) fn latest(&self) -> f64 {
        self.factors.latest()
    }

    /// Sets whether another observation is wanted.
    pub(super) fn doubt(&mut self, is_wanted: bool) {
        self.doubted = is_wanted;
    }

    /// Returns the factor that all but a fifth of the observations exceed, if all places are filled, and
    /// those up to the middle agree.
    pub(super) fn agreed(&self) -> Option<f64> {
        let from = if Self::IS_MEDIAN { N / 5 } else { 0 };
        let (low, middle) = (self.factors.at(from)?, self.factors.at(N / 2)?);
        (self.factors.is_full() && middle <= AGREEMENT * low).then_some(low)
    }

    /// Reduces the observations to a single one with the current value.
    pub(super) fn forget(&mut self) {
        if let Some(value) = self.value() {
            self.factors.reduce_to(value);
            (self.attempts, self.doubted) = (0, false);
        }
    }

    /// Records that the profile in use includes the value.
    pub(super) fn use_value(&mut self) {
        self.used = self.value().map_or(self.used, |value| value as f32);
    }

    /// Returns the factor that counts; `None` without observations.
    pub(super) fn value(&self) -> Option<f64> {
        if Self::IS_MEDIAN { self.factors.median() } else { self.factors.at(0) }
    }
}

/// Returns the relative difference of two factors.
fn apart(factor: f64, from: f32) -> f64 {
    let apart = factor / f64::from(from) - 1.0;
    if apart < 0.0 { -apart } else { apart }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_answers_change_nothing_and_a_change_is_believed_both_ways() {
        let mut recent = Recent::<KEPT>::new(false);
        let seen = [1.0, 1.01, 1.0].map(|factor| recent.note(factor));
        assert_eq!(seen, [Learnt::Nothing, Learnt::News, Learnt::News]);
        recent.use_value();
        assert_eq!(recent.note(40.0), Learnt::Nothing, "late");
        let slow = [2.0; 4].map(|factor| recent.note(factor));
        assert_eq!(slow, [Learnt::Nothing, Learnt::Nothing, Learnt::Nothing, Learnt::Change]);
        recent.use_value();
        recent.forget();
        assert_eq!((recent.value(), recent.count()), (Some(2.0), 1));
        assert_eq!(recent.note(1.0), Learnt::Change, "nothing makes a network seem fast");
    }

    #[test]
    fn agreeing_factors_are_the_network_and_scattered_ones_the_receiver() {
        let agreed = |factors: [f64; 5]| {
            let mut recent = Recent::<KEPT>::new(true);
            factors.into_iter().for_each(|factor| _ = recent.note(factor));
            recent.agreed()
        };
        assert_eq!(agreed([2.0, 2.25, 2.125, 40.0, 2.0]), Some(2.0), "one of them was late");
        assert_eq!(agreed([2.0, 9.0, 3.0, 40.0, 5.0]), None, "the receiver computes");
        let mut few = Recent::<KEPT>::new(true);
        (0..4).for_each(|_| _ = few.note(2.0));
        assert_eq!(few.agreed(), None, "too few");
    }

    #[test]
    fn the_median_of_factors_of_several_transfers_counts() {
        let mut recent = Recent::<KEPT_OF_MANY>::new(false);
        for factor in [1.0, 1.5, 0.6, 1.0] {
            recent.note(factor);
        }
        assert_eq!(recent.value(), Some(1.0));
    }
}
