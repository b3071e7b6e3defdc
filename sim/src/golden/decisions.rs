//! Not of a paper: decisions from recorded observations of real jobs, against those of hindsight.

use super::table::Table;
use nmad_engine::Observations;
use nmad_engine::replay::{self, Outcome};

/// A recorded job.
pub struct Job {
    /// The file's name without its ending.
    pub name: &'static str,
    /// What ran, and beside what.
    pub what: &'static str,
    /// Nothing that matters has changed while it ran.
    pub is_steady: bool,
    /// The file ([`Observations`]).
    pub text: &'static str,
}

macro_rules! jobs {
    ($($name:literal: $is_steady:expr, $what:literal;)*) => {
        /// All recorded jobs.
        pub const JOBS: &[Job] = &[$(Job {
            name: $name,
            what: $what,
            is_steady: $is_steady,
            text: include_str!(concat!("../../observations/", $name, ".txt")),
        }),*];
    };
}

jobs! {
    "quiet": true, "two hosts, rails of 4 and 2.8 Gbit/s, messages of 4 MiB one way, split over both rails \
        and over the first one in turns; the 2 cores have little else to do";
    "loops": true, "the same beside a busy loop for each core";
    "compiler": true, "the same beside four compilers";
    "oversubscribed": true, "the same beside two more such jobs, each with two ranks";
    "stopped": true, "the same, and the receiver is stopped for a second";
    "shared": false, "the same, and another job uses the first rail from the second to the fifth second";
    "changed": false, "the same, and the first rail has 2 Gbit/s from the second to the fifth second";
    "computes": false, "messages of 1 MiB to a receiver that computes half as long as a message takes, or \
        twice as long";
    "rate": true, "windows of 64 messages of 8 B and 1 KiB";
    "rate-loops": true, "the same beside a busy loop for each core";
}

/// An estimator, or several that serve one decision.
pub struct Estimator {
    /// Its name in the table.
    pub name: &'static str,
    /// Replays it on a trace, which may be of a steady job; `None`: the trace has no such observations.
    pub replay: fn(&Observations, bool) -> Option<Outcome>,
}

/// All estimators.
pub const ESTIMATORS: &[Estimator] = &[
    Estimator { name: "split over rails", replay: replay::rails },
    Estimator { name: "trust in profiles", replay: replay::trust },
    Estimator { name: "latency", replay: |all, _| replay::latency(all) },
    Estimator { name: "split or one rail", replay: |all, _| replay::together(all) },
    Estimator { name: "late receiver", replay: |all, _| replay::late(all) },
    Estimator { name: "bursts", replay: |all, _| replay::bursts(all) },
];

/// Returns the rows of the table for one trace.
pub fn rows(name: &str, all: &Observations, is_steady: bool) -> Vec<[String; 7]> {
    let row = |estimator: &Estimator| {
        let Outcome { decisions, regret, switches, false_switches, behind, behind_decisions } =
            (estimator.replay)(all, is_steady)?;
        let behind = match behind_decisions {
            0 => "0".into(),
            count => format!("{count} in {:.0} ms", behind.as_ns() as f64 / 1e6),
        };
        Some([
            name.into(),
            estimator.name.into(),
            decisions.to_string(),
            format!("{:.1}", 100.0 * regret),
            switches.to_string(),
            false_switches.to_string(),
            behind,
        ])
    };
    ESTIMATORS.iter().filter_map(row).collect()
}

/// The heads of the table.
const HEADS: [&str; 7] = ["job", "decision", "made", "regret %", "switches", "false", "behind"];

/// Returns the table for traces, given by their names.
pub fn of(title: &str, traces: &[(String, Observations)]) -> Table {
    table_of(title, traces.iter().flat_map(|(name, all)| rows(name, all, false)).collect())
}

fn table_of(title: &str, rows: Vec<[String; 7]>) -> Table {
    let mut table = Table::new(title, "none: observations of real jobs");
    table.rows(&HEADS, &rows);
    table
}

/// What all jobs together say about one estimator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    /// Decisions, and the mean regret of all.
    pub decisions: u32,
    /// Mean of the jobs' regrets, weighted by their decisions.
    pub regret: f64,
    /// Decisions in steady jobs, and false switches among them.
    pub steady: u32,
    /// See `steady`.
    pub false_switches: u32,
}

/// Returns the sum of an estimator over all recorded jobs.
pub fn sum(estimator: &Estimator) -> Sum {
    let mut sum = Sum::default();
    for job in JOBS {
        let Some(outcome) = (estimator.replay)(&read(job), job.is_steady) else { continue };
        sum.decisions += outcome.decisions;
        sum.regret += outcome.regret * f64::from(outcome.decisions);
        if job.is_steady {
            sum.steady += outcome.decisions;
            sum.false_switches += outcome.false_switches;
        }
    }
    sum.regret /= f64::from(sum.decisions.max(1));
    sum
}

/// Reads a recorded job.
///
/// # Panics
/// Its file is damaged.
pub fn read(job: &Job) -> Observations {
    Observations::parse(job.text).unwrap_or_else(|why| panic!("observations/{}.txt: {why}", job.name))
}

/// The figure.
pub fn table() -> String {
    let rows = JOBS.iter().flat_map(|job| rows(job.name, &read(job), job.is_steady)).collect();
    let mut table = table_of("Decisions from recorded observations, against those of hindsight", rows);
    let sums = ESTIMATORS.iter().map(|estimator| {
        let Sum { decisions, regret, steady, false_switches } = sum(estimator);
        let each = 1e4 * f64::from(false_switches) / f64::from(steady.max(1));
        [
            estimator.name.into(),
            decisions.to_string(),
            format!("{:.1}", 100.0 * regret),
            format!("{false_switches} of {steady}"),
            format!("{each:.1}"),
        ]
    });
    let heads = ["all jobs", "made", "regret %", "false while steady", "in 10,000"];
    table.rows(&heads, &sums.collect::<Vec<[String; 5]>>());
    table.note(
        "Each decision is made by the estimators that ship, with what was observed until then. Regret: the \
         mean cost beyond that of the best decision, which is known from the observations around it, \
         before and after: for rails the median time of a byte within a second, or in the whole of a \
         steady job, for one rail or several the median of 16 messages of each, for waits the mean of 17, \
         for bursts that of 1,025, for the latency the second lowest of 33 answers (its cost is the error \
         in the time of 64 KiB by rendezvous). Switches: changes of the decision, without trials; false: \
         those that made it worse by more than 3 %. Behind: the longest row of decisions that all cost \
         more than 10 % too much.",
    );
    for Job { name, what, is_steady, .. } in JOBS {
        let steady = if *is_steady { " Steady." } else { "" };
        table.note(&format!("{name}: {what}.{steady}"));
    }
    table.finish()
}
