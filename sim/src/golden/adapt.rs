//! Sampling while messages go (P4's future work): rails of which only nominal figures are known.

use super::card::Card;
use super::machines::{OPTERON, TODAY};
use super::networks::{MX_10G, TCP_1G, TCP_4G};
use super::ping_pong::{Exchange, Stage};
use super::sampling::{Bench, LARGE_MAX};
use super::table::{Table, rounded, size};
use crate::machine::Machine;
use std::sync::OnceLock;

/// Messages after which the ratio is shown.
const AFTER: [usize; 6] = [1, 5, 20, 50, 100, 200];
/// Messages of a run.
pub const MESSAGES: usize = 200;
/// What may be lost then, as part of the time with sampled profiles.
const BOUND: f64 = 0.05;

/// Rails, and the sizes that are compared.
struct Case {
    name: &'static str,
    machine: Machine,
    cards: &'static [&'static Card],
}

const CASES: [Case; 3] = [
    Case { name: "Myri-10G on Opteron 1.8 GHz", machine: OPTERON, cards: &[&MX_10G] },
    Case { name: "TCP of today, 4 Gbit/s", machine: TODAY, cards: &[&TCP_4G] },
    Case { name: "TCP of today, 4 and 1 Gbit/s", machine: TODAY, cards: &[&TCP_4G, &TCP_1G] },
];
const SIZES: [usize; 6] = [8, 1 << 10, 16 << 10, 48 << 10, 256 << 10, 1 << 20];

/// How a run went, relative to one with sampled profiles.
#[derive(Debug, Clone)]
pub struct Run {
    /// The rails.
    pub rails: &'static str,
    /// Bytes of each message.
    pub len: usize,
    /// Half a round trip of each message, in those with sampled profiles.
    pub ratios: Vec<f64>,
    /// The same without sampling and without learning, in the end.
    pub nominal: f64,
}

impl Run {
    /// The mean of the ratios of the messages between half of this number and this number.
    pub fn after(&self, number: usize) -> f64 {
        let part = &self.ratios[number / 2..number];
        part.iter().sum::<f64>() / part.len().max(1) as f64
    }
}

impl Case {
    fn stage(&self, adapts: bool) -> Stage {
        let mut stage = Stage::shipped(self.machine, self.cards, "auto");
        stage.config.adapts = adapts;
        stage
    }

    fn sampled(&self) -> Stage {
        let mut stage = self.stage(false);
        let bench = |card: &&'static Card| Bench { machine: self.machine, card, hand_off_ns: 200 };
        stage.profiles = self.cards.iter().map(|card| Some(bench(card).profile(LARGE_MAX))).collect();
        stage
    }

    fn run(&self, len: usize) -> Run {
        let last = |stage: &Stage| stage.course(&Exchange::one(len), 12).halves[11] as f64;
        let best = last(&self.sampled());
        let course = self.stage(true).course(&Exchange::one(len), MESSAGES);
        let ratios = course.halves.iter().map(|&half_ns| half_ns as f64 / best).collect();
        Run { rails: self.name, len, ratios, nominal: last(&self.stage(false)) / best }
    }
}

/// One run from nominal figures, by the place of its rails in the table.
pub fn run(case: usize, len: usize) -> Run {
    CASES[case].run(len)
}

/// All runs, made once in a process: the table and the picture share them.
pub fn runs() -> &'static [Run] {
    static RUNS: OnceLock<Vec<Run>> = OnceLock::new();
    RUNS.get_or_init(|| CASES.iter().flat_map(|case| SIZES.map(|len| case.run(len))).collect())
}

/// The table.
pub fn table() -> String {
    let mut table =
        Table::new("Sampling while messages go", "mx-10g on Opteron 1.8 GHz; TCP of today on Zen 5");
    table.note(
        "A ping-pong by strategy auto. Nothing was sampled (NMAD_SAMPLE=off): profiles begin as nominal \
         figures, transfers correct them, and thresholds follow. Half a round trip in the mean of the \
         messages from half of this number to this number, relative to sampled profiles; fixed: nominal \
         figures and default thresholds to the end.",
    );
    let mut worst: (f64, String) = (0.0, String::new());
    for case in &CASES {
        table.note(&format!("{}:", case.name));
        let runs: Vec<&Run> = runs().iter().filter(|run| run.rails == case.name).collect();
        let at = |number: usize| runs.iter().map(|run| rounded(run.after(number))).collect();
        let heads = AFTER.map(|number| number.to_string());
        let mut columns = vec![("bytes", runs.iter().map(|run| size(run.len)).collect::<Vec<_>>())];
        columns.extend(heads.iter().zip(AFTER).map(|(head, number)| (head.as_str(), at(number))));
        columns.push(("fixed", runs.iter().map(|run| rounded(run.nominal)).collect()));
        table.series(&columns);
        for run in runs {
            let lost = run.after(MESSAGES) - 1.0;
            if lost > worst.0 {
                worst = (lost, format!("{}, {}", case.name, size(run.len)));
            }
        }
    }
    table.claim(
        "After some hundred messages nothing takes more than 5 % longer than with sampled profiles",
        worst.0 <= BOUND,
        &format!("the most after {MESSAGES} messages is {:.1} % ({})", 100.0 * worst.0, worst.1),
    );
    table.finish()
}
