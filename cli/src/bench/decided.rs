//! The table of `nmad bench decision`.

use nmad_bench::pattern::decision::{Plan, run as measure};
use nmad_bench::table::Table;
use serde::Serialize;
use std::process::ExitCode;

use super::args::Decision;
use crate::output::{USAGE, complain, say, say_json, say_line};
use crate::settings;

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    bench: &'static str,
    strategy: &'a str,
    rails: usize,
    /// Nanoseconds: median and quartiles.
    ns: f64,
    ns_lower: f64,
    ns_upper: f64,
}

/// Measures and prints.
pub(super) fn run(args: &Decision) -> ExitCode {
    let strategies = match &args.strategy[..] {
        [] => Plan::STRATEGIES.map(String::from).to_vec(),
        named => named.to_vec(),
    };
    let plan = Plan { strategies, rails: Plan::RAILS.to_vec(), repeat: args.repeat };
    let mut table = Table::new("one decision about a large message, ns", &["strategy", "rails", "took"]);
    let known = match settings::strategies(&plan.strategies) {
        Ok(known) => known,
        Err(why) => return complain("bench", &why, USAGE),
    };
    let measured = measure(&plan, &known, &mut |found| {
        let (strategy, rails, ns) = (&*found.strategy, found.rails, found.ns);
        if args.json {
            let (ns, ns_lower, ns_upper) = (ns.median, ns.lower, ns.upper);
            return say_json("bench", &Line { bench: "decision", strategy, rails, ns, ns_lower, ns_upper });
        }
        table.row([strategy.to_string(), rails.to_string(), ns.text("").to_string()]);
    });
    if let Err(error) = measured {
        return complain("bench", &error, USAGE);
    }
    if !args.json {
        say(table);
        say_line(format_args!("medians and quartiles of {} samples", plan.repeat));
    }
    ExitCode::SUCCESS
}
