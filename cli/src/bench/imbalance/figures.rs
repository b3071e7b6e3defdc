//! The tables of `nmad bench imbalance`.

use nmad_bench::stats::{Summary, number};
use nmad_bench::table::Table;
use nmad_compare::{Exercise, Measured, OURS};
use serde::Serialize;

use crate::bench::rounds::{Rounds, spread};

/// One line of `--json`.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    bench: &'static str,
    #[serde(flatten)]
    measured: &'a Measured,
    imbalance: f64,
    imbalance_of_bytes: f64,
    imbalance_of_messages: f64,
    share: f64,
}

pub(super) fn line(measured: &Measured) -> Line<'_> {
    Line {
        bench: "imbalance",
        measured,
        imbalance: measured.imbalance(),
        imbalance_of_bytes: measured.imbalance_of_bytes(),
        imbalance_of_messages: measured.imbalance_of_messages(),
        share: measured.share(),
    }
}

/// The figures of one exercise at one place.
pub(super) struct Group<'a> {
    pub(super) place: &'static str,
    pub(super) exercise: &'a Exercise,
    all: Vec<&'a Measured>,
}

impl<'a> Group<'a> {
    /// The contestants that have a figure, ours first.
    pub(super) fn names(&self) -> Vec<&'a str> {
        self.rounds(communication).names()
    }

    /// A figure of one contestant, over the rounds.
    pub(super) fn of(&self, who: &str, figure: impl Fn(&Measured) -> f64) -> Option<Summary> {
        self.rounds(figure).of(who)
    }

    fn rounds(&self, figure: impl Fn(&Measured) -> f64) -> Rounds<'a> {
        self.all.iter().map(|measured| (&*measured.who, measured.round, figure(measured))).collect()
    }
}

fn communication(measured: &Measured) -> f64 {
    measured.communication_us
}

/// The figures by place and exercise.
pub(super) fn groups(all: &[Measured]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for measured in all {
        let is_its =
            |group: &&mut Group<'_>| group.place == measured.place && *group.exercise == measured.exercise;
        match groups.iter_mut().find(is_its) {
            Some(group) => group.all.push(measured),
            None => groups.push(Group {
                place: measured.place,
                exercise: &measured.exercise,
                all: vec![measured],
            }),
        }
    }
    groups.sort_by(|a, b| (a.place, a.exercise).cmp(&(b.place, b.exercise)));
    groups
}

/// A table for each place.
pub(super) fn tables(all: &[Measured]) -> Vec<Table> {
    let groups = groups(all);
    let mut places: Vec<&str> = groups.iter().map(|group| group.place).collect();
    places.dedup();
    places.into_iter().map(|place| table(place, groups.iter().filter(|group| group.place == place))).collect()
}

fn table<'a>(place: &str, groups: impl Iterator<Item = &'a Group<'a>>) -> Table {
    let header =
        ["what", "who", "communication", "iteration", "imbalance", "share", "GFlop/s", "memory", "ours/best"];
    let title = format!("{place}: time in communication of an iteration, us");
    let mut table = Table::new(title, &header).words([1]);
    for group in groups {
        for who in group.names() {
            let figure =
                |of: fn(&Measured) -> f64| group.of(who, of).map_or("-".into(), |s| number(s.median));
            let ratio = group.rounds(communication).ratio().filter(|_| who == OURS);
            table.row([
                if who == OURS { group.exercise.to_string() } else { String::new() },
                who.to_string(),
                group.of(who, communication).map_or("-".into(), spread),
                figure(|measured| measured.iteration_us),
                figure(Measured::imbalance),
                figure(|measured| 100.0 * measured.share()) + " %",
                if group.exercise.is_toy() { String::new() } else { figure(|measured| measured.gflops) },
                if group.exercise.is_toy() { memory(group, who) } else { String::new() },
                ratio.map_or(String::new(), spread),
            ]);
        }
    }
    table
}

/// By how much the memory of a rank grew, in all rounds.
fn memory(group: &Group<'_>, who: &str) -> String {
    let most = group.of(who, |measured| measured.memory() as f64).map_or(0.0, |summary| summary.max);
    format!("{} KiB", number(most / 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(who: &str, round: u32, communication_us: f64) -> Measured {
        let exercise = Exercise {
            program: "overlap".into(),
            variant: "plain".into(),
            degree: 1,
            messages: 1,
            size: 1 << 20,
        };
        Measured {
            place: "node2",
            ranks: 2,
            who: who.into(),
            round,
            exercise,
            communication_us,
            lowest_us: communication_us,
            highest_us: communication_us,
            iteration_us: 1000.0,
            gflops: 0.0,
            by_rank: Vec::new(),
        }
    }

    #[test]
    fn an_exercise_has_a_row_for_each_contestant() {
        let all = [
            measured("mpich", 1, 100.0),
            measured(OURS, 1, 50.0),
            measured("openmpi", 1, 400.0),
            measured("mpich", 2, 200.0),
            measured(OURS, 2, 150.0),
        ];
        let groups = groups(&all);
        assert_eq!((groups.len(), groups[0].names()), (1, vec![OURS, "mpich", "openmpi"]));
        let text = tables(&all)[0].to_string();
        assert!(text.contains("overlap plain degree 1 1 MiB"), "{text}");
    }
}
