//! The last few factors of one kind of transfer: how long it took relative to what was expected.
//!
//! The lowest counts: receivers that look late make a transfer seem slow, nothing makes one seem fast. A
//! faster network is therefore believed at once, a slower one when all that is kept says so, and some late
//! answers change nothing. Where several transfers make one factor the middle counts: of two that follow
//! each other the second seems fast if the answer to the first was late.

/// Factors that are kept.
const KEPT: usize = 5;
/// Observations after which a kind of transfer is known.
pub(super) const ENOUGH: u32 = 3;
/// A value that has moved by more than this part is news.
const NEWS: f64 = 0.03;
/// One that lies further off than this part tells of another network than the one that is known.
const CHANGE: f64 = 0.2;

/// Observations that lie within this factor of each other agree: a network delays all alike, a receiver that
/// looks late each by another time.
const AGREEMENT: f64 = 1.3;

/// What an observation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learnt {
    /// As was known.
    Nothing,
    /// A point is better known: the profile is to be made anew.
    News,
    /// The network is another one than before: all ways are to be tried again.
    Change,
}

/// The last factors.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recent {
    factors: [f32; KEPT],
    count: u32,
    /// Attempts to observe it since it was last wanted.
    attempts: u32,
    /// The factor that the profile in use has; zero: it has none of its own here.
    used: f32,
    /// One more observation is wanted.
    doubted: bool,
    /// The middle counts.
    is_of_many: bool,
    /// The length of the last one, in bytes.
    pub(super) len: u64,
}

impl Recent {
    /// Nothing is observed yet; `is_expected`: the profile in use says that the factor is one.
    pub(super) fn new(is_expected: bool) -> Recent {
        Recent { used: if is_expected { 1.0 } else { 0.0 }, ..Recent::default() }
    }

    /// The same of factors that several transfers make.
    pub(super) fn of_many(self) -> Recent {
        Recent { is_of_many: true, ..self }
    }

    /// Observations that are kept or have been.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Attempts to observe it.
    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt to observe it is made.
    pub(super) fn attempt(&mut self) {
        self.attempts += 1;
    }

    /// Whether more than `enough` observations are wanted, after no more than `attempts_max` attempts.
    pub(super) fn wants(&self, enough: u32, attempts_max: u32) -> bool {
        (self.doubted || self.count < enough) && self.attempts < attempts_max
    }

    /// One more observation, and what follows from it.
    pub(super) fn note(&mut self, factor: f64) -> Learnt {
        self.factors[self.count as usize % KEPT] = factor as f32;
        self.count += 1;
        let is_used = self.used > 0.0;
        // Where it is not what is known, others tell whether that was chance.
        self.doubted = is_used && apart(factor, self.used) > CHANGE;
        let moved = self.value().map_or(0.0, |value| if is_used { apart(value, self.used) } else { 1.0 });
        match moved {
            moved if is_used && moved > CHANGE => Learnt::Change,
            moved if moved > NEWS && self.count >= 2 => Learnt::News,
            _ => Learnt::Nothing,
        }
    }

    /// All attempts are free again.
    pub(super) fn retry(&mut self) {
        self.attempts = 0;
    }

    /// One more observation is wanted of what is known, and all attempts are free again.
    pub(super) fn look_again(&mut self) {
        if self.count > 0 {
            (self.doubted, self.attempts) = (true, 0);
        }
    }

    /// The last factor; zero without any.
    pub(super) fn latest(&self) -> f64 {
        f64::from(self.factors[(self.count as usize + KEPT - 1) % KEPT])
    }

    /// Whether one more observation is wanted, in spite of the last one or because of it.
    pub(super) fn doubt(&mut self, is_wanted: bool) {
        self.doubted = is_wanted;
    }

    /// The factor that counts, if there are as many observations as are kept and three agree on it.
    pub(super) fn agreed(&self) -> Option<f64> {
        let mut sorted = self.factors;
        sorted.sort_unstable_by(f32::total_cmp);
        let from = usize::from(self.is_of_many);
        let agree = f64::from(sorted[from + 2]) <= AGREEMENT * f64::from(sorted[from]);
        self.value().filter(|_| self.known() == KEPT && agree)
    }

    /// The value counts as one observation.
    pub(super) fn forget(&mut self) {
        if let Some(value) = self.value() {
            let factors = [value as f32; KEPT];
            *self = Recent { factors, count: 1, attempts: 0, doubted: false, ..*self };
        }
    }

    /// The profile in use has the value.
    pub(super) fn use_value(&mut self) {
        self.used = self.value().map_or(self.used, |value| value as f32);
    }

    /// The factor that counts; none: nothing was observed.
    pub(super) fn value(&self) -> Option<f64> {
        let mut sorted = self.factors;
        let sorted = &mut sorted[..self.known()];
        sorted.sort_unstable_by(f32::total_cmp);
        let place = if self.is_of_many { sorted.len() / 2 } else { 0 };
        sorted.get(place).map(|&factor| f64::from(factor))
    }

    fn known(&self) -> usize {
        (self.count as usize).min(KEPT)
    }
}

/// How far a factor is from another one, as part of it.
fn apart(factor: f64, from: f32) -> f64 {
    let apart = factor / f64::from(from) - 1.0;
    if apart < 0.0 { -apart } else { apart }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_answers_change_nothing_and_a_change_is_believed_both_ways() {
        let mut recent = Recent::new(false);
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
    fn what_agrees_is_the_network_and_what_scatters_is_not() {
        let agreed = |factors: [f64; 5]| {
            let mut recent = Recent::new(true);
            factors.into_iter().for_each(|factor| _ = recent.note(factor));
            recent.agreed()
        };
        assert_eq!(agreed([2.0, 2.25, 2.125, 40.0, 2.0]), Some(2.0), "one of them was late");
        assert_eq!(agreed([2.0, 9.0, 3.0, 40.0, 5.0]), None, "the receiver computes");
        let mut few = Recent::new(true);
        (0..4).for_each(|_| _ = few.note(2.0));
        assert_eq!(few.agreed(), None, "too few");
    }

    #[test]
    fn of_factors_of_many_transfers_the_middle_counts() {
        let mut recent = Recent::new(false).of_many();
        for factor in [1.0, 1.5, 0.6, 1.0] {
            recent.note(factor);
        }
        assert_eq!(recent.value(), Some(1.0));
    }
}
