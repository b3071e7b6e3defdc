//! Jobs that fall into two modes: a cell whose jobs take either a short or a long time has no typical time.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::facts::{Difference, Facts, differences};
use crate::plan::Cell;
use crate::statistics::median;

/// With fewer jobs there is no telling. A mode has two jobs at least: one alone is an outlier.
pub(crate) const JOBS_MIN: usize = 6;
const MODE_MIN: usize = 2;
/// Largest probability of such a gap within one mode, for jobs to count as two modes.
const CHANCE: f64 = 0.01;
/// Modes whose medians are nearer than this factor are of no interest.
const FAR: f64 = 1.15;

/// Two modes of one library in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Median of the fast jobs in microseconds.
    pub fast_us: f64,
    /// Median of the slow ones.
    pub slow_us: f64,
    /// Number of slow jobs.
    pub slow: usize,
    /// How probable a gap as wide as this one is within one mode.
    pub chance: f64,
    /// Circumstances in which slow jobs differ from fast ones.
    pub differ: Vec<Difference>,
}

/// The jobs of one library in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jobs {
    /// How many.
    pub jobs: usize,
    /// Median of all, in microseconds.
    pub us: f64,
    /// Its modes; none if it has one.
    pub split: Option<Split>,
}

/// A cell in which the jobs of some library have two modes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModesRow {
    /// Which one.
    pub cell: Cell,
    /// All libraries.
    pub libraries: BTreeMap<String, Jobs>,
}

/// The time of a job in microseconds, and its circumstances.
#[derive(Clone, Copy)]
pub(crate) struct Timed<'a> {
    pub(crate) us: f64,
    pub(crate) facts: Option<&'a Facts>,
}

impl ModesRow {
    /// The modes of a cell, from the jobs of each library; none if each has one.
    pub(crate) fn of<'a>(
        cell: &Cell,
        libraries: impl Iterator<Item = (&'a str, Vec<Timed<'a>>)>,
    ) -> Option<ModesRow> {
        let jobs = |(who, times): (&str, Vec<Timed<'_>>)| {
            let us = median(&times.iter().map(|time| time.us).collect::<Vec<_>>())?;
            Some((who.to_string(), Jobs { jobs: times.len(), us, split: split(&times) }))
        };
        let libraries: BTreeMap<String, Jobs> = libraries.filter_map(jobs).collect();
        let is_split = libraries.values().any(|jobs| jobs.split.is_some());
        is_split.then(|| ModesRow { cell: cell.clone(), libraries })
    }
}

/// The two modes of the times of some jobs.
fn split(times: &[Timed<'_>]) -> Option<Split> {
    let mut sorted: Vec<Timed<'_>> = times.iter().filter(|time| time.us > 0.0).copied().collect();
    sorted.sort_by(|a, b| a.us.total_cmp(&b.us));
    let logs: Vec<f64> = sorted.iter().map(|time| time.us.ln()).collect();
    let (place, chance) = gap(&logs)?;
    let (fast, slow) = sorted.split_at(place);
    let of = |jobs: &[Timed<'_>]| median(&jobs.iter().map(|time| time.us).collect::<Vec<_>>());
    let (fast_us, slow_us) = (of(fast)?, of(slow)?);
    if chance > CHANCE || slow_us < FAR * fast_us {
        return None;
    }
    fn facts<'a>(jobs: &[Timed<'a>]) -> Vec<&'a Facts> {
        jobs.iter().filter_map(|time| time.facts).collect()
    }
    let differ = differences(&facts(fast), &facts(slow));
    Some(Split { fast_us, slow_us, slow: slow.len(), chance, differ })
}

/// The widest gap between two groups of sorted values, and how probable such a one is within one mode.
///
/// The gaps between n values of a uniform distribution, of which no density with one mode is less
/// concentrated, divide their range as n - 2 random points would. So one gap has more than the part p of it
/// with probability (1 - p)^(n - 2), and of two gaps only one can have more than half. There are n - 3 gaps
/// with two values on each side.
fn gap(sorted: &[f64]) -> Option<(usize, f64)> {
    let count = sorted.len();
    if count < JOBS_MIN {
        return None;
    }
    let width = |place: &usize| sorted[*place] - sorted[*place - 1];
    let place = (MODE_MIN..=count - MODE_MIN).max_by(|a, b| width(a).total_cmp(&width(b)))?;
    let range = sorted[count - 1] - sorted[0];
    let part = if range > 0.0 { width(&place) / range } else { 0.0 };
    let chance = match part > 0.5 {
        true => (count - 3) as f64 * (1.0 - part).powi(count as i32 - 2),
        false => 1.0,
    };
    Some((place, chance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::facts;
    use crate::store::tests::cell;

    fn jobs(times: &[f64]) -> Vec<Timed<'static>> {
        times.iter().map(|us| Timed { us: *us, facts: None }).collect()
    }

    #[test]
    fn jobs_of_one_mode_have_no_modes() {
        // Close together, spread evenly, and with an outlier.
        for times in [
            vec![1.0, 1.01, 1.02, 0.99, 1.0, 1.015, 0.995],
            vec![1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4],
            vec![1.0, 1.02, 1.01, 0.99, 1.03, 5.0],
            vec![1.0; 10],
        ] {
            assert_eq!(split(&jobs(&times)), None, "{times:?}");
        }
    }

    #[test]
    fn jobs_of_two_modes_are_split_where_the_gap_is() {
        let found = split(&jobs(&[0.41, 0.97, 0.40, 0.98, 0.42, 0.40, 0.96, 0.41])).expect("two modes");
        assert_eq!((found.slow, found.fast_us, found.slow_us), (3, 0.41, 0.97));
        assert!(found.chance < 0.01, "{found:?}");
        // Four jobs, two of each: no telling.
        assert_eq!(split(&jobs(&[0.4, 0.4, 0.98, 0.98])), None);
        // Two modes, but so near that it does not matter.
        assert_eq!(split(&jobs(&[1.0, 1.001, 1.0, 1.1, 1.101, 1.1, 1.1, 1.0])), None);
    }

    #[test]
    fn modes_that_overlap_are_not_told_apart() {
        assert_eq!(split(&jobs(&[1.0, 1.3, 1.5, 1.2, 1.4, 1.7, 2.0, 2.3, 1.8, 2.1])), None);
    }

    /// Xorshift, so that the test is the same each time.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    /// Of samples with one mode at most 5 % are taken for two, whether they have no tails (uniform, for which
    /// the formula holds), two (normal), or a long one (exponential), as times have.
    #[test]
    fn samples_of_one_mode_are_rarely_taken_for_two() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let shapes: [fn(&mut Random) -> f64; 3] = [
            |random| random.next(),
            |random| (0..12).map(|_| random.next()).sum(),
            |random| -(1.0 - random.next()).ln(),
        ];
        for (number, shape) in shapes.iter().enumerate() {
            for count in [6, 8, 10, 12] {
                let wrong = (0..4000).filter(|_| {
                    let mut values: Vec<f64> = (0..count).map(|_| shape(&mut random)).collect();
                    values.sort_by(f64::total_cmp);
                    gap(&values).expect("enough values").1 <= CHANCE
                });
                let share = wrong.count() as f64 / 4000.0;
                assert!(share < 0.05, "shape {number}, {count} values: {share}");
                // The formula is exact for the uniform distribution.
                assert!(number != 0 || (share - CHANCE).abs() < 0.006, "{count} values: {share}");
            }
        }
    }

    #[test]
    fn what_differed_between_the_jobs_is_told() {
        let lines = [0.07, 0.28, 0.07, 0.29, 0.07, 0.28].map(|line_us| facts(line_us, 0, None));
        let times = [0.4, 0.98, 0.4, 0.97, 0.41, 0.99];
        let jobs: Vec<Timed<'_>> =
            times.iter().zip(&lines).map(|(us, facts)| Timed { us: *us, facts: Some(facts) }).collect();
        let found = split(&jobs).expect("two modes");
        let names: Vec<&str> = found.differ.iter().map(|one| &*one.fact).collect();
        assert_eq!(names, ["bare line, us"]);
    }

    #[test]
    fn a_cell_is_told_with_all_libraries_if_one_has_modes() {
        let cell = cell("allreduce", 8);
        let (two, one) = (jobs(&[0.4, 0.98, 0.4, 0.97, 0.41, 0.99]), jobs(&[0.5, 0.51, 0.5]));
        let row = ModesRow::of(&cell, [("ours", two), ("mpich", one.clone())].into_iter()).expect("modes");
        assert!(row.libraries["ours"].split.is_some());
        assert_eq!(row.libraries["mpich"], Jobs { jobs: 3, us: 0.5, split: None });
        assert!(ModesRow::of(&cell, [("ours", one)].into_iter()).is_none());
    }
}
