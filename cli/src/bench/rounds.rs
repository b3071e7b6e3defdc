//! Figures of several contestants over rounds: their names, medians, and the ratio of ours to the best other
//! one.

use nmad_bench::stats::{Summary, number};
use nmad_compare::OURS;

/// Values of one figure, each with its contestant and round; less is better.
pub(super) struct Rounds<'a>(Vec<(&'a str, u32, f64)>);

impl<'a> FromIterator<(&'a str, u32, f64)> for Rounds<'a> {
    fn from_iter<T: IntoIterator<Item = (&'a str, u32, f64)>>(all: T) -> Rounds<'a> {
        Rounds(all.into_iter().collect())
    }
}

impl<'a> Rounds<'a> {
    /// Returns the names of the contestants that have a value, ours first.
    pub(super) fn names(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for (who, ..) in &self.0 {
            if !names.contains(who) {
                names.push(who);
            }
        }
        names.sort_by_key(|name| *name != OURS);
        names
    }

    /// Returns the values of one contestant, summarised over the rounds.
    pub(super) fn of(&self, who: &str) -> Option<Summary> {
        let own = self.0.iter().filter(|(name, ..)| *name == who);
        Summary::of(&own.map(|(.., figure)| *figure).collect::<Vec<_>>())
    }

    /// Returns the ratio of ours to the best other contestant, round by round.
    pub(super) fn ratio(&self) -> Option<Summary> {
        let others = self.names().into_iter().filter(|name| *name != OURS);
        let median = |name: &str| self.of(name).map_or(f64::MAX, |summary| summary.median);
        let best = others.min_by(|a, b| median(a).total_cmp(&median(b)))?;
        let find = |wanted: &str, when: u32| {
            self.0.iter().find(|(who, round, _)| *who == wanted && *round == when).map(|(.., figure)| *figure)
        };
        let rounds = self.0.iter().filter(|(who, ..)| *who == OURS).map(|(_, round, _)| *round);
        let ratio = |round| Some(find(OURS, round)? / find(best, round).filter(|figure| *figure > 0.0)?);
        Summary::of(&rounds.filter_map(ratio).collect::<Vec<_>>())
    }
}

/// Formats the median, with the extremes if there is more than one value.
pub(super) fn spread(summary: Summary) -> String {
    let Summary { median, min, max, count, .. } = summary;
    match count {
        0 | 1 => number(median),
        _ => format!("{} ({} .. {})", number(median), number(min), number(max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round_beside_the_best() {
        let all = [
            ("mpich", 1, 100.0),
            (OURS, 1, 50.0),
            ("openmpi", 1, 400.0),
            ("mpich", 2, 200.0),
            (OURS, 2, 150.0),
        ];
        let rounds: Rounds<'_> = all.into_iter().collect();
        assert_eq!(rounds.names(), [OURS, "mpich", "openmpi"]);
        let ratio = rounds.ratio().unwrap();
        assert_eq!((ratio.min, ratio.max, ratio.count), (0.5, 0.75, 2));
        assert_eq!(spread(rounds.of(OURS).unwrap()), "100 (50.0 .. 150)");
    }
}
