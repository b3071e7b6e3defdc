//! Samples condensed to what is worth printing: the median and how far the samples spread.
//!
//! Times on a shared machine have a long tail, so neither mean nor standard deviation is offered.
use std::fmt;

/// Order statistics of a set of samples, all in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of samples.
    pub count: usize,
    /// The smallest sample.
    pub min: f64,
    /// The first quartile: a quarter of the samples lie below it.
    pub lower: f64,
    /// Half of the samples lie below it.
    pub median: f64,
    /// The third quartile.
    pub upper: f64,
    /// The largest sample.
    pub max: f64,
}

impl Summary {
    /// Summarises `samples`, in any order. Samples that are not finite are left out; `None` if nothing
    /// remains.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|s| s.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        Some(Summary {
            count: sorted.len(),
            min,
            lower: quantile(&sorted, 0.25),
            median: quantile(&sorted, 0.5),
            upper: quantile(&sorted, 0.75),
            max,
        })
    }

    /// The median, and the quartiles in brackets: `3.41 us (3.38 .. 3.60)`. The unit may be empty.
    pub fn text<'a>(&'a self, unit: &'a str) -> impl fmt::Display + 'a {
        Text { summary: self, unit, extremes: false }
    }

    /// As [`Summary::text`], and the extremes: `3.41 us (3.38 .. 3.60, all 3.30 .. 9.11)`.
    pub fn text_with_extremes<'a>(&'a self, unit: &'a str) -> impl fmt::Display + 'a {
        Text { summary: self, unit, extremes: true }
    }
}

/// The value below which `percent` percent of the samples lie. Samples that are not finite are left out;
/// `None` if nothing remains.
pub fn percentile(samples: &[f64], percent: u32) -> Option<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|s| s.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile(&sorted, f64::from(percent.min(100)) / 100.0))
}

/// The value below which a share `at` (0 to 1) of the samples lies, interpolated linearly between the two
/// neighbours (type 7 of Hyndman and Fan 1996, the usual one). `sorted` must not be empty.
fn quantile(sorted: &[f64], at: f64) -> f64 {
    let place = at * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

struct Text<'a> {
    summary: &'a Summary,
    unit: &'a str,
    extremes: bool,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { min, lower, median, upper, max, .. } = *self.summary;
        // One number of decimals for all, the median's, so that they compare at a glance.
        let digits = decimals(median);
        let gap = if self.unit.is_empty() { "" } else { " " };
        write!(f, "{median:.digits$}{gap}{} ({lower:.digits$} .. {upper:.digits$}", self.unit)?;
        if self.extremes {
            write!(f, ", all {min:.digits$} .. {max:.digits$}")?;
        }
        f.write_str(")")
    }
}

/// Decimals that show three significant digits of `value`; never fewer than all digits before the point.
fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    }
}

/// The longest of some times over their mean: 1 is balance. None: nobody took any time.
pub fn imbalance(times: impl IntoIterator<Item = u64>) -> Option<f64> {
    let times: Vec<u64> = times.into_iter().collect();
    let sum = times.iter().sum::<u64>() as f64;
    let longest = times.iter().copied().max()? as f64;
    (sum > 0.0).then(|| longest * times.len() as f64 / sum)
}

/// A number with three significant digits, the way [`Summary::text`] writes it: `3.41`, `34.1`, `3412`.
pub fn number(value: f64) -> String {
    let digits = decimals(value);
    format!("{value:.digits$}")
}

/// A length in the largest binary unit that divides it: `8 B`, `64 KiB`, `3 MiB`, `1025 B`.
pub fn bytes(len: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.iter().find(|(size, _)| len >= *size && len.is_multiple_of(*size));
    unit.map_or_else(|| format!("{len} B"), |(size, name)| format!("{} {name}", len / size))
}

/// A length to three digits in the largest unit below it, where room is scarce: `602 KiB`, `1.50 MiB`, `8 B`.
pub fn bytes_rounded(len: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let exact = bytes(len);
    // A round length, `64 KiB`, is shorter as it is than with decimals.
    if len < 1024 || !exact.ends_with(" B") && exact.len() <= "999 KiB".len() {
        return exact;
    }
    let mut value = len as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", number(value), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate_between_neighbours() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0]).expect("four samples");
        assert_eq!(summary, Summary { count: 4, min: 1.0, lower: 1.75, median: 2.5, upper: 3.25, max: 4.0 });
    }

    #[test]
    fn one_sample_is_its_own_spread() {
        let summary = Summary::of(&[7.0]).expect("one sample");
        assert_eq!((summary.lower, summary.median, summary.upper), (7.0, 7.0, 7.0));
    }

    #[test]
    fn no_number_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(Summary::of(&[f64::NAN, 1.0]).map(|s| s.count), Some(1));
    }

    #[test]
    fn text_shows_three_digits_of_the_median() {
        let summary = Summary::of(&[3.38, 3.41, 3.6]).expect("three samples");
        assert_eq!(summary.text("us").to_string(), "3.41 us (3.40 .. 3.50)");
        assert_eq!(summary.text_with_extremes("us").to_string(), "3.41 us (3.40 .. 3.50, all 3.38 .. 3.60)");
        assert_eq!(
            Summary::of(&[11512.4]).expect("one").text("MB/s").to_string(),
            "11512 MB/s (11512 .. 11512)"
        );
    }

    #[test]
    fn lengths_use_the_largest_unit_that_divides() {
        let cases = [
            (0, "0 B"),
            (8, "8 B"),
            (1025, "1025 B"),
            (65536, "64 KiB"),
            (3 << 20, "3 MiB"),
            (1 << 40, "1 TiB"),
        ];
        for (len, text) in cases {
            assert_eq!(bytes(len), text);
        }
    }

    #[test]
    fn rounded_lengths_have_three_digits() {
        let cases =
            [(8, "8 B"), (65536, "64 KiB"), (616_809, "602 KiB"), (3 << 19, "1.50 MiB"), (1 << 20, "1 MiB")];
        for (len, text) in cases {
            assert_eq!(bytes_rounded(len), text);
        }
        assert_eq!(bytes_rounded(1023 * 1024 + 1), "0.999 MiB");
        assert_eq!(bytes_rounded(u64::MAX), "16777216 TiB");
    }
}
