//! Axes: where a value lies on the picture, and which values get a label.
use std::ops::RangeInclusive;

/// How values spread along an axis.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    Log,
}

/// Maps values to pixels and names the values worth a label. The pixels run from the low end to the high one,
/// which for an upright axis is the smaller number.
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    from: i32,
    to: i32,
    ticks: Vec<f64>,
}

impl Axis {
    /// An axis from zero to a round value above `max`, with about `count` labels.
    pub fn linear(max: f64, count: usize, pixels: (i32, i32)) -> Axis {
        let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        let step = round_step(max / count.max(1) as f64);
        let steps = (max / step - 1e-9).ceil().max(1.0);
        let ticks = (0..=steps as usize).map(|index| index as f64 * step).collect();
        Axis { scale: Scale::Linear, low: 0.0, high: steps * step, from: pixels.0, to: pixels.1, ticks }
    }

    /// As [`Axis::linear`], but ends at `max` itself: for time, where the end means something.
    pub fn linear_until(max: f64, count: usize, pixels: (i32, i32)) -> Axis {
        let mut axis = Axis::linear(max, count, pixels);
        if max.is_finite() && max > 0.0 {
            axis.high = max;
            axis.ticks.retain(|tick| *tick <= max);
        }
        axis
    }

    /// A logarithmic axis over `values`, which must be positive, widened to powers of `base`; at most `count`
    /// labels, which are powers of `base`.
    pub fn log(values: RangeInclusive<f64>, base: f64, count: usize, pixels: (i32, i32)) -> Axis {
        let first = (values.start().log(base) + 1e-9).floor() as i32;
        let last = ((values.end().log(base) - 1e-9).ceil() as i32).max(first + 1);
        let step = (last - first) as usize / count.max(1) + 1;
        let ticks = (first..=last).step_by(step).map(|power| base.powi(power)).collect();
        let (low, high) = (base.powi(first), base.powi(last));
        Axis { scale: Scale::Log, low, high, from: pixels.0, to: pixels.1, ticks }
    }

    /// The values that get a label, each with its pixel.
    pub fn ticks(&self) -> impl Iterator<Item = (f64, i32)> {
        self.ticks.iter().map(|value| (*value, self.pixel(*value)))
    }

    /// Where `value` lies; values beyond the ends lie on them.
    pub fn pixel(&self, value: f64) -> i32 {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        let place = if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 };
        self.from + (place * f64::from(self.to - self.from)).round() as i32
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    decade * factors.into_iter().find(|factor| decade * factor >= step * (1.0 - 1e-9)).unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(axis: &Axis) -> Vec<f64> {
        axis.ticks().map(|(value, _)| value).collect()
    }

    #[test]
    fn linear_labels_are_round() {
        assert_eq!(values(&Axis::linear(11_512.0, 6, (0, 100))), [0.0, 2e3, 4e3, 6e3, 8e3, 10e3, 12e3]);
        assert_eq!(values(&Axis::linear(1.0, 4, (0, 100))), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(values(&Axis::linear_until(7.0, 4, (0, 100))), [0.0, 2.0, 4.0, 6.0]);
    }

    #[test]
    fn log_labels_are_powers_and_few() {
        let axis = Axis::log(65536.0..=1048576.0, 2.0, 9, (0, 400));
        assert_eq!(values(&axis), [65536.0, 131072.0, 262144.0, 524288.0, 1048576.0]);
        assert_eq!(axis.pixel(262144.0), 200);
        assert!(values(&Axis::log(1.0..=1e12, 2.0, 9, (0, 400))).len() <= 9 + 1);
    }

    #[test]
    fn nothing_lies_outside() {
        let axis = Axis::linear(10.0, 5, (0, 100));
        let pixels = [-5.0, 15.0, f64::NAN, f64::INFINITY].map(|value| axis.pixel(value));
        assert_eq!(pixels, [0, 100, 0, 0]);
        assert_eq!(values(&Axis::linear(f64::NAN, 2, (0, 10))), [0.0, 0.5, 1.0]);
    }
}
