//! The table of `nmad bench prediction`.

use nmad_bench::pattern::prediction::{Found, Plan, run as measure};
use nmad_bench::pattern::{BenchError, Pair};
use nmad_bench::stats::bytes;
use nmad_bench::table::Table;
use serde::Serialize;

use super::args::Sizes;
use crate::output::{say, say_json, say_line};

/// One line of `--json`.
#[derive(Serialize)]
struct Line {
    bench: &'static str,
    bytes: usize,
    messages: usize,
    /// Medians in microseconds.
    predicted_us: f64,
    took_us: f64,
    /// Relative errors, 0.05 for 5 percent.
    error_median: f64,
    error_p95: f64,
}

/// Measures, and prints at the active rank.
pub(super) fn run(pair: Pair<'_>, args: &Sizes) -> Result<(), BenchError> {
    let lens = args.size.clone().unwrap_or_else(|| Plan::LENS.to_vec());
    let plan = Plan { lens, repeat: args.common.repeat.unwrap_or(200) };
    let header = ["size", "predicted", "took", "error", "95 % below"];
    let mut table = Table::new("large messages, one way, us", &header);
    measure(pair, &plan, &mut |found| {
        if args.common.json {
            return say_json("bench", &line(found));
        }
        let (predicted, took) = (found.predicted_us.text(""), found.took_us.text(""));
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        let errors = [percent(found.median), percent(found.p95)];
        table.row(
            [bytes(found.len as u64), predicted.to_string(), took.to_string()].into_iter().chain(errors),
        );
    })?;
    if pair.is_active() && !args.common.json {
        say(table);
        say_line(format_args!(
            "medians and quartiles of {} messages; error: median of |took / predicted - 1|",
            plan.repeat
        ));
    }
    Ok(())
}

fn line(found: &Found) -> Line {
    Line {
        bench: "prediction",
        bytes: found.len,
        messages: found.took_us.count,
        predicted_us: found.predicted_us.median,
        took_us: found.took_us.median,
        error_median: found.median,
        error_p95: found.p95,
    }
}
