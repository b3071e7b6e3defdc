//! One run from a seed, and what came of it.

use crate::death::Deaths;
use crate::network::{Traffic, lock};
use crate::scenario::{Options, Scenario};
use crate::trace::Time;
use crate::workload::Plan;
use crate::world::World;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Something that must not happen has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When, in nanoseconds of virtual time.
    pub at: u64,
    /// What.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", Time(self.at).to_string().trim_start(), self.text)
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// A hash of every event: equal for equal runs.
    pub hash: u64,
    /// Events that were noted.
    pub events: u64,
    /// Messages submitted.
    pub messages: u64,
    /// Bytes of those messages.
    pub bytes: u64,
    /// Accesses to memory of other hosts.
    pub accesses: u64,
    /// Tasks of hosts with files: accesses, and what they do together.
    pub tasks: u64,
    /// The traffic on the wires.
    pub traffic: Traffic,
    /// Virtual time at the end, in nanoseconds.
    pub virtual_ns: u64,
    /// The first violation.
    pub violation: Option<Violation>,
    /// The stage and each event as a line, with [`Options::explain`].
    pub lines: Vec<String>,
}

/// Runs one seed to its end, or to the first violation. A panic of the engine is a violation.
pub fn run_seed(seed: u64, options: &Options) -> Report {
    run_seed_noting(seed, options).0
}

/// Runs one seed; returns also the times at which something left a host or was delivered to it, if the
/// network keeps them.
fn run_seed_noting(seed: u64, options: &Options) -> (Report, BTreeSet<(usize, u64)>) {
    let scenario = Scenario::draw(seed, options);
    let plan = Plan::draw(&scenario);
    let mut lines: Vec<String> = Vec::new();
    if options.explain {
        lines.extend(scenario.to_string().lines().map(String::from));
        lines.extend(plan.files.as_ref().map(ToString::to_string));
    }
    let mut world = World::new(scenario, plan, options.explain);
    let result = catch_unwind(AssertUnwindSafe(|| world.run()));
    let text = match result {
        Ok(Ok(())) => None,
        Ok(Err(objection)) => Some(objection),
        Err(panic) => Some(format!("panic: {}", panic_text(panic.as_ref()))),
    };
    let (messages, bytes) = world.messages();
    let network = world.network();
    let mut network = lock(&network);
    lines.extend(network.trace.take_lines());
    let moments = network.moments.take().unwrap_or_default();
    let report = Report {
        seed,
        hash: network.trace.hash(),
        events: network.trace.events(),
        messages,
        bytes,
        accesses: world.accesses(),
        tasks: world.tasks(),
        traffic: network.traffic,
        virtual_ns: world.now(),
        violation: text.map(|text| Violation { at: world.now(), text }),
        lines,
    };
    (report, moments)
}

/// The runs of one seed with each death of a host.
#[derive(Debug)]
pub struct EachDeath {
    /// Number of runs.
    pub runs: u64,
    /// The host that died in the run of the report, and when, in nanoseconds; `None` if no host died.
    pub death: Option<(usize, u64)>,
    /// The first run with a violation, or the run without a death.
    pub report: Report,
}

/// Runs a seed once without a death, then twice for each host and each packet or chunk that leaves it or is
/// delivered to it: the host dies at that time, and 1 ns later.
pub fn each_death(seed: u64, options: &Options) -> EachDeath {
    let run = |death| {
        let deaths = Deaths::Single(death);
        run_seed_noting(seed, &Options { deaths, ..options.clone() })
    };
    let (report, moments) = run(None);
    let mut whole = EachDeath { runs: 1, death: None, report };
    if whole.report.violation.is_some() {
        return whole;
    }
    for death in moments.into_iter().flat_map(|(host, at)| [(host, at), (host, at + 1)]) {
        let (report, _) = run(Some(death));
        whole.runs += 1;
        if report.violation.is_some() {
            return EachDeath { death: Some(death), report, ..whole };
        }
    }
    whole
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
