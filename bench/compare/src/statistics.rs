//! Means, intervals and tests. Times are compared as ratios, so everything is computed on logarithms.

use special::Beta;

/// A mean of logarithms, and how certain it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    /// Half of the interval that has the true mean with 95 %, by Student's t; none of a single value.
    pub(crate) half: Option<f64>,
}

/// The mean of `values` with its interval; none of none.
pub(crate) fn estimate(values: &[f64]) -> Option<Estimate> {
    let mean = mean(values)?;
    let half = (values.len() > 1).then(|| {
        let count = values.len() as f64;
        quantile(count - 1.0) * (variance(values, mean) / count).sqrt()
    });
    Some(Estimate { mean, half })
}

/// A median, and an interval that has the true one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Middle {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// How probable it is that the interval has the true median.
    pub(crate) confidence: f64,
}

/// How certain an interval should be. Six values are needed for that.
pub(crate) const CERTAIN: f64 = 0.95;

/// The median of `values` with the narrowest interval between two of them that has the true median with
/// [`CERTAIN`], or with all of them between its ends if they are too few for that; none of a single value.
///
/// It holds for every distribution: each value lies below the true median with one half, so the number
/// of those that do is binomial (David and Nagaraja, Order Statistics, section 7.1).
pub(crate) fn middle(values: &[f64]) -> Option<Middle> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    if count < 2 {
        return None;
    }
    // That the true median is outside of an interval without `left_out` values at each end.
    let outside = |left_out: usize| {
        let (mut ways, mut sum) = (1.0, 0.0);
        for below in 0..=left_out {
            sum += ways;
            ways *= (count - below) as f64 / (below + 1) as f64;
        }
        2.0 * sum / 2f64.powi(count as i32)
    };
    let left_out =
        (1..count / 2).take_while(|left_out| 1.0 - outside(*left_out) >= CERTAIN).last().unwrap_or(0);
    Some(Middle {
        median: median(&sorted)?,
        low: sorted[left_out],
        high: sorted[count - 1 - left_out],
        confidence: 1.0 - outside(left_out),
    })
}

/// The arithmetic mean; none of none.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle value, or the mean of the two in the middle; none of none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// Of a sample around its mean, with n - 1 in the denominator. Needs two values.
pub(crate) fn variance(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// How probable it is that Student's t lies farther from zero than `t`, on either side.
fn beyond(t: f64, freedom: f64) -> f64 {
    let (a, b) = (freedom / 2.0, 0.5);
    (freedom / (freedom + t * t)).inc_beta(a, b, a.ln_beta(b))
}

/// The point that t lies farther from zero than with 5 %: by bisection, since the probability falls.
fn quantile(freedom: f64) -> f64 {
    // One degree of freedom has 12.7; more have less.
    let (mut low, mut high) = (0.0, 16.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if beyond(middle, freedom) > 0.05 { low = middle } else { high = middle }
    }
    high
}

/// Two samples of logarithms, and what is known of the variance of samples like them.
pub(crate) struct Pair<'a> {
    pub(crate) before: &'a [f64],
    pub(crate) after: &'a [f64],
    /// The usual variance of such samples.
    pub(crate) usual: f64,
}

/// Degrees of freedom that the usual variance is worth. Three rounds have two: alone, they find only
/// changes of many times the spread, and take a spread that is small by chance for precision.
const PRIOR: f64 = 4.0;

impl Pair<'_> {
    /// The variance of both within themselves, and its degrees of freedom; none if neither has two values.
    pub(crate) fn pooled(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
        let freedom = (before.len() + after.len()) as f64 - 2.0;
        let sum = |values: &[f64]| {
            let mean = mean(values).unwrap_or(0.0);
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        };
        (freedom > 0.0).then(|| ((sum(before) + sum(after)) / freedom, freedom))
    }

    /// The difference of the means, and how probable one as large is by chance: a t test whose variance is
    /// drawn towards the usual one (Smyth 2004, moderated t). None if a sample is empty or both have one
    /// value.
    pub(crate) fn test(&self) -> Option<(f64, f64)> {
        let difference = mean(self.after)? - mean(self.before)?;
        let (own, freedom) = Pair::pooled(self.before, self.after)?;
        let variance = (PRIOR * self.usual + freedom * own) / (PRIOR + freedom);
        let spread = variance * (1.0 / self.before.len() as f64 + 1.0 / self.after.len() as f64);
        if spread <= 0.0 {
            return Some((difference, if difference == 0.0 { 1.0 } else { 0.0 }));
        }
        Some((difference, beyond(difference / spread.sqrt(), PRIOR + freedom)))
    }
}

/// Which of these probabilities are significant, so that 5 % of those are expected to be false at most
/// (Benjamini and Hochberg 1995).
pub(crate) fn significant(probabilities: &[f64]) -> Vec<bool> {
    const FALSE: f64 = 0.05;
    let mut sorted = probabilities.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let limit = (1..).zip(&sorted).filter(|(rank, p)| **p <= FALSE * f64::from(*rank) / count).last();
    let limit = limit.map_or(-1.0, |(_, p)| *p);
    probabilities.iter().map(|p| *p <= limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-3 * expected.abs().max(1.0), "{found} is not {expected}");
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // t(0.975) with 2 degrees of freedom is 4.3027, with 9 it is 2.2622.
        for (freedom, point) in [(1.0, 12.706), (2.0, 4.3027), (4.0, 2.7764), (9.0, 2.2622), (1000.0, 1.9623)]
        {
            near(quantile(freedom), point);
        }
        let three = estimate(&[1.0, 2.0, 3.0]).unwrap();
        near(three.mean, 2.0);
        near(three.half.unwrap(), 4.3027 / 3f64.sqrt());
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        near(estimate(&ten).unwrap().half.unwrap(), 2.2622 * (9.1667f64 / 10.0).sqrt());
        assert_eq!(estimate(&[5.0]), Some(Estimate { mean: 5.0, half: None }));
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn intervals_of_medians_are_those_of_the_tables() {
        // From tables of the sign test: the rank of the lower end, and the confidence.
        for (count, rank, confidence) in [
            (2, 1, 0.5),
            (3, 1, 0.75),
            (5, 1, 0.9375),
            (6, 1, 0.96875),
            (8, 1, 0.9922),
            (9, 2, 0.9609),
            (12, 3, 0.9614),
            (15, 4, 0.9648),
        ] {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let found = middle(&values).unwrap();
            near(found.confidence, confidence);
            assert_eq!((found.low, found.high), (f64::from(rank), f64::from(count + 1 - rank)), "{count}");
            assert_eq!(found.median, f64::from(count + 1) / 2.0);
        }
        assert_eq!(middle(&[1.0]), None);
    }

    #[test]
    fn a_difference_is_judged_by_the_spread_of_its_kind() {
        let (before, after) = ([1.0, 1.1, 0.9], [1.3, 1.4, 1.2]);
        // With the usual variance equal to its own, this is the plain t test with 4 more degrees of freedom:
        // t = 0.3 / (0.1 * sqrt(2/3)) = 3.674 and p (two-sided, 8 degrees) = 0.00627.
        let own = Pair { before: &before, after: &after, usual: 0.01 };
        let (difference, p) = own.test().unwrap();
        near(difference, 0.3);
        near(p, 0.00627);
        let noisy = Pair { before: &before, after: &after, usual: 0.2 };
        assert!(noisy.test().unwrap().1 > 0.2);
        let one = Pair { before: &[1.0], after: &[2.0], usual: 0.01 };
        assert_eq!(one.test(), None);
        let same = Pair { before: &[1.0, 1.0], after: &[1.0, 1.0], usual: 0.0 };
        assert_eq!(same.test(), Some((0.0, 1.0)));
    }

    #[test]
    fn many_tests_need_smaller_probabilities() {
        // The example of the paper: with 15 tests at 5 %, the four smallest are significant.
        let published = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        let found = significant(&published);
        assert_eq!(found.iter().filter(|is| **is).count(), 4);
        assert!(found[..4].iter().all(|is| *is));
        assert_eq!(significant(&[0.2, 0.9]), [false, false]);
        assert!(significant(&[]).is_empty());
    }
}
