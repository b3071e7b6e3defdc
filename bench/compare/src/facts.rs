//! The circumstances of a cell in a job: what jobs with different times may differ in.

use serde::{Deserialize, Serialize};

/// The circumstances of a cell's samples in one job, as the job has reported them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Half a round trip of a bare cache line between the first two ranks, in microseconds: it depends on
    /// where the cores are, for a virtual machine on where its host has put them. None where ranks have no
    /// cores of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_us: Option<f64>,
    /// Nanoseconds of a step of arithmetic, a fixed number of cycles, on the slowest core.
    pub step_ns: f64,
    /// Involuntary context switches of all ranks.
    pub involuntary: u64,
    /// Voluntary ones.
    pub voluntary: u64,
    /// Page faults of all ranks.
    pub faults: u64,
    /// The core of each rank.
    pub cores: Vec<u32>,
    /// The algorithm that the library named last for the collective; none from libraries that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
}

impl Facts {
    /// Reads the fields of a line behind the number of the cell.
    pub(crate) fn read(fields: &[&str]) -> Option<Facts> {
        let &[line, step, involuntary, voluntary, faults, cores] = fields else { return None };
        let positive =
            |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
        Some(Facts {
            line_us: positive(line),
            step_ns: positive(step)?,
            involuntary: involuntary.parse().ok()?,
            voluntary: voluntary.parse().ok()?,
            faults: faults.parse().ok()?,
            cores: cores.split(',').map(|core| core.parse().ok()).collect::<Option<_>>()?,
            algorithm: None,
        })
    }
}

/// A collective and the algorithm that MAD-MPI uses for it, as it says with `NMAD_MPI_EXPLAIN`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) collective: String,
    pub(crate) algorithm: String,
}

impl Choice {
    /// Reads a line of standard error: `nmad: reduce of 8 B over 2 ranks: board, ...` when a collective is
    /// called first, `nmad: reduce of 8 B from now on: pool; ...` after a trial.
    pub(crate) fn read(line: &str) -> Option<Choice> {
        let (what, rest) = line.strip_prefix("nmad: ")?.split_once(": ")?;
        let (collective, _) = what
            .split_once(" of ")
            .filter(|(_, which)| which.contains(" B over ") || which.ends_with("now on"))?;
        let algorithm = rest.split([',', ';', ' ']).next().filter(|name| !name.is_empty())?;
        Some(Choice { collective: collective.into(), algorithm: algorithm.into() })
    }

    /// Whether it is about the collective of a pattern.
    pub(crate) fn is_of(&self, pattern: &str) -> bool {
        let name = pattern.strip_prefix('i').unwrap_or(pattern);
        let name = name.strip_prefix("ex").unwrap_or(name);
        let variants = ["", "v", "_block"];
        variants.iter().any(|variant| name.strip_suffix(variant).is_some_and(|name| name == self.collective))
    }
}

/// A circumstance in which the jobs of two groups differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Its name, with the unit.
    pub fact: String,
    /// Its median in the fast jobs, or the values that occurred.
    pub fast: String,
    /// Its median, or the values that occurred, in the slow jobs.
    pub slow: String,
}

/// A fact with a number.
type Number = (&'static str, fn(&Facts) -> Option<f64>);

const NUMBERS: [Number; 5] = [
    ("bare line, us", |facts| facts.line_us),
    ("step of arithmetic, ns", |facts| Some(facts.step_ns)),
    ("involuntary switches", |facts| Some(facts.involuntary as f64)),
    ("voluntary switches", |facts| Some(facts.voluntary as f64)),
    ("page faults", |facts| Some(facts.faults as f64)),
];

/// A fact in words.
type Word = (&'static str, fn(&Facts) -> Option<String>);

const WORDS: [Word; 2] = [
    ("cores of the ranks", |facts| {
        let cores: Vec<String> = facts.cores.iter().map(u32::to_string).collect();
        Some(cores.join(","))
    }),
    ("algorithm", |facts| facts.algorithm.clone()),
];

/// A number differs if, of a fast and a slow job chosen at random, the slow one has the larger (or the
/// smaller) value with this probability.
const SEPARATED: f64 = 0.9;

/// In which circumstances slow jobs differ from fast ones.
pub(crate) fn differences(fast: &[&Facts], slow: &[&Facts]) -> Vec<Difference> {
    let numbers = NUMBERS.iter().filter_map(|(name, value)| {
        let of = |jobs: &[&Facts]| jobs.iter().filter_map(|job| value(job)).collect::<Vec<f64>>();
        let (fast, slow) = (of(fast), of(slow));
        if larger(&fast, &slow)?.max(larger(&slow, &fast)?) < SEPARATED {
            return None;
        }
        let text = |values: &[f64]| crate::statistics::median(values).map(number);
        Some(Difference { fact: name.to_string(), fast: text(&fast)?, slow: text(&slow)? })
    });
    let words = WORDS.iter().filter_map(|(name, value)| {
        let of = |jobs: &[&Facts]| {
            jobs.iter().filter_map(|job| value(job)).collect::<std::collections::BTreeSet<String>>()
        };
        let (fast, slow) = (of(fast), of(slow));
        let differ = !fast.is_empty() && !slow.is_empty() && fast.is_disjoint(&slow);
        let text = |values: std::collections::BTreeSet<String>| Vec::from_iter(values).join(" or ");
        differ.then(|| Difference { fact: name.to_string(), fast: text(fast), slow: text(slow) })
    });
    numbers.chain(words).collect()
}

/// How probable it is that a value of `b` is larger than one of `a`; none without values.
fn larger(a: &[f64], b: &[f64]) -> Option<f64> {
    let pairs = a.len() * b.len();
    let count = |x: &f64| b.iter().filter(|y| x < y).count();
    (pairs > 0).then(|| a.iter().map(count).sum::<usize>() as f64 / pairs as f64)
}

/// Three digits.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn facts(line_us: f64, faults: u64, algorithm: Option<&str>) -> Facts {
        Facts {
            line_us: Some(line_us),
            step_ns: 3.0,
            faults,
            cores: vec![0, 1],
            algorithm: algorithm.map(String::from),
            ..Facts::default()
        }
    }

    #[test]
    fn lines_of_facts_are_read_and_damaged_ones_are_not() {
        let read = |line: &str| Facts::read(&line.split(' ').collect::<Vec<_>>());
        let all = read("0.0712 2.9 3 4 5 0,1").expect("facts");
        assert_eq!((all.line_us, all.involuntary, all.voluntary, all.faults), (Some(0.0712), 3, 4, 5));
        assert_eq!(all.cores, [0, 1]);
        assert_eq!(read("0.0000 2.9 3 4 5 0,1").expect("facts").line_us, None);
        for damaged in ["0.07 nan 3 4 5 0,1", "0.07 2.9 -3 4 5 0,1", "0.07 2.9 3 4 5 0,x", "0.07 2.9 3 4 5"] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn choices_are_found_in_what_the_library_explains() {
        let told = "nmad: allreduce of 64 B over 2 ranks: board, board 0.4 us, ring does not fit";
        let tried = "nmad: allreduce of 64 B from now on: pool; measured, board 1.0 us, pool 0.8 us";
        let choice = |line| Choice::read(line).expect(line);
        assert_eq!(choice(told).algorithm, "board");
        assert_eq!(choice(tried).algorithm, "pool");
        for (pattern, is_of) in
            [("allreduce", true), ("iallreduce", true), ("reduce", false), ("allreduce_x", false)]
        {
            assert_eq!(choice(told).is_of(pattern), is_of, "{pattern}");
        }
        let scan = Choice { collective: "scan".into(), algorithm: "chain".into() };
        assert!(scan.is_of("exscan") && scan.is_of("iexscan"));
        let gather = Choice { collective: "gather".into(), algorithm: "flat".into() };
        assert!(gather.is_of("gatherv") && !gather.is_of("allgather"));
        for other in ["nmad: rank 1 closed the link", "warning: reduce of 8 B over 2 ranks: board", ""] {
            assert_eq!(Choice::read(other), None, "{other}");
        }
    }

    #[test]
    fn what_separates_slow_jobs_from_fast_ones_is_named_and_nothing_else() {
        let fast = [facts(0.07, 5, Some("board")), facts(0.071, 900, Some("board"))];
        let slow = [facts(0.28, 7, Some("pool")), facts(0.29, 8, Some("flat"))];
        let found = differences(&fast.each_ref(), &slow.each_ref());
        let names: Vec<&str> = found.iter().map(|one| &*one.fact).collect();
        assert_eq!(names, ["bare line, us", "algorithm"]);
        assert_eq!((&*found[0].fast, &*found[0].slow), ("0.071", "0.285"));
        assert_eq!((&*found[1].fast, &*found[1].slow), ("board", "flat or pool"));
        // Jobs that are alike, and those that said nothing.
        assert!(differences(&fast.each_ref(), &fast.each_ref()).is_empty());
        assert!(differences(&fast.each_ref(), &[]).is_empty());
    }
}
