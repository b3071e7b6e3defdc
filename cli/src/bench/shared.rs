//! The table of `nmad bench fairness`.

use newmadeleine::Session;
use nmad_bench::pattern::BenchError;
use nmad_bench::pattern::fairness::{Found, Plan, run as measure};
use nmad_bench::table::Table;
use serde::Serialize;
use std::time::Duration;

use super::args::Fairness;
use crate::output::{say, say_json, say_line};

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    bench: &'static str,
    flow: &'a str,
    beside: &'a str,
    samples: usize,
    /// Medians: the first flow's part of both, and both in MB/s.
    share: f64,
    together_mb_per_s: f64,
}

/// Measures, and prints at rank 0.
pub(super) fn run(session: &Session, throttle: &[u64], args: &Fairness) -> Result<(), BenchError> {
    let plan = Plan { span: Duration::from_secs(args.seconds), repeat: args.common.repeat.unwrap_or(5) };
    let mut table = Table::new("two flows on one rail", &["flow", "beside", "its share, %", "both, MB/s"]);
    measure(session, plan, throttle, &mut |found| {
        if args.common.json {
            return say_json("bench", &line(found));
        }
        let percent = |part: f64| format!("{:.0}", 100.0 * part);
        let share = &found.share;
        let share =
            format!("{} ({} .. {})", percent(share.median), percent(share.lower), percent(share.upper));
        table.row([found.flow.clone(), found.beside.clone(), share, found.together.text("").to_string()]);
    })?;
    if session.rank() == 0 && !args.common.json {
        say(table);
        say_line(format_args!("medians and quartiles of {} samples of {} s", plan.repeat, args.seconds));
    }
    Ok(())
}

fn line(found: &Found) -> Line<'_> {
    Line {
        bench: "fairness",
        flow: &found.flow,
        beside: &found.beside,
        samples: found.share.count,
        share: found.share.median,
        together_mb_per_s: found.together.median,
    }
}
