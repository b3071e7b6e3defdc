//! Smoothed means and mean deviations, for waits (Jacobson, "Congestion avoidance and control", SIGCOMM
//! 1988). A wait is what comes next, noise included, while a base cost ([`super::low`], [`super::window`])
//! is what a thing costs without it.
//!
//! The weights of the last observation stand here, since they are one choice: how many observations a change
//! of habit may take.

/// Weight of the last observation in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A half: receivers change with the phases of a program, and a message is rare. `nmad sim --golden
    /// decisions` has the regret.
    Half,
    /// A quarter: deviations of round trips (RFC 6298), and the gain of shared work.
    Quarter,
    /// An eighth: round trips (RFC 6298), and the queues on their way.
    Eighth,
}

impl Weight {
    const fn bits(self) -> u32 {
        match self {
            Weight::Half => 1,
            Weight::Quarter => 2,
            Weight::Eighth => 3,
        }
    }

    /// Returns the mean after another observation.
    #[inline]
    pub const fn mean(self, before: u64, observed: u64) -> u64 {
        let bits = self.bits();
        let others = before.saturating_mul((1 << bits) - 1);
        others.saturating_add(observed) >> bits
    }
}

/// A smoothed mean and its mean deviation; both zero before the first observation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Smoothed {
    mean: u64,
    deviation: u64,
}

impl Smoothed {
    /// Adds an observation.
    pub(crate) fn note(&mut self, observed: u64) {
        if self.mean == 0 {
            (self.mean, self.deviation) = (observed.max(1), observed / 2);
            return;
        }
        self.deviation = Weight::Quarter.mean(self.deviation, self.mean.abs_diff(observed));
        self.mean = Weight::Eighth.mean(self.mean, observed);
    }

    /// Returns the mean; zero without observations.
    #[inline]
    pub(crate) fn mean(&self) -> u64 {
        self.mean
    }

    /// Returns the mean deviation.
    #[inline]
    pub(crate) fn deviation(&self) -> u64 {
        self.deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_moves_by_the_weight_of_the_observation() {
        assert_eq!([Weight::Half, Weight::Quarter, Weight::Eighth].map(|w| w.mean(800, 0)), [400, 600, 700]);
        assert_eq!(Weight::Half.mean(u64::MAX, u64::MAX), u64::MAX >> 1, "no overflow");
        let mut smoothed = Smoothed::default();
        smoothed.note(1_000);
        assert_eq!((smoothed.mean(), smoothed.deviation()), (1_000, 500));
        smoothed.note(1_800);
        assert_eq!((smoothed.mean(), smoothed.deviation()), (1_100, 575));
        (0..200).for_each(|_| smoothed.note(1_800));
        assert!(smoothed.mean() > 1_780 && smoothed.deviation() < 20, "{smoothed:?}");
    }
}
