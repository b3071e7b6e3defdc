//! Quantiles of the last few observations.

/// The last `N` observations of one quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window<const N: usize> {
    values: [f32; N],
    count: u32,
}

impl<const N: usize> Default for Window<N> {
    fn default() -> Self {
        Window { values: [0.0; N], count: 0 }
    }
}

impl<const N: usize> Window<N> {
    /// Replaces all observations by this one.
    pub fn reduce_to(&mut self, value: f64) {
        *self = Window::default();
        self.note(value);
    }

    /// Adds an observation.
    pub fn note(&mut self, value: f64) {
        self.values[self.count as usize % N] = value as f32;
        self.count = self.count.wrapping_add(1);
    }

    /// Returns the number of observations, including those no longer in the window.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns whether there were at least `N` observations.
    pub fn is_full(&self) -> bool {
        self.count as usize >= N
    }

    /// Returns the last observation; zero without any.
    pub fn latest(&self) -> f64 {
        f64::from(self.values[(self.count as usize + N - 1) % N])
    }

    /// Returns the observation at place `rank` in ascending order, from 0; the largest if there are fewer.
    /// `None` without observations.
    pub fn at(&self, rank: usize) -> Option<f64> {
        let known = (self.count as usize).min(N);
        let mut sorted = self.values;
        let sorted = &mut sorted[..known];
        sorted.sort_unstable_by(f32::total_cmp);
        sorted.get(rank.min(known.saturating_sub(1))).map(|&value| f64::from(value))
    }

    /// Returns the base cost: the second lowest observation. The lowest may be too low, for example if the
    /// acknowledgement of the transfer before was late and added time to that one.
    pub fn low(&self) -> Option<f64> {
        self.at(1)
    }

    /// Returns the median.
    pub fn median(&self) -> Option<f64> {
        self.at((self.count as usize).min(N) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_the_last_observations_counts() {
        let mut window = Window::<5>::default();
        assert_eq!((window.low(), window.median(), window.is_full()), (None, None, false));
        window.note(7.0);
        assert_eq!((window.low(), window.median(), window.latest()), (Some(7.0), Some(7.0), 7.0));
        [1.0, 9.0, 2.0, 8.0].into_iter().for_each(|value| window.note(value));
        assert_eq!((window.low(), window.median(), window.at(4)), (Some(2.0), Some(7.0), Some(9.0)));
        [50.0, 60.0, 70.0].into_iter().for_each(|value| window.note(value));
        assert_eq!((window.low(), window.count()), (Some(8.0), 8), "the oldest are gone");
    }

    #[test]
    fn one_observation_that_is_too_fast_and_half_of_them_too_slow_change_nothing() {
        let mut window = Window::<5>::default();
        [1.0, 1.01, 900.0, 0.4, 80.0].into_iter().for_each(|value| window.note(value));
        assert_eq!(window.low(), Some(1.0));
    }
}
