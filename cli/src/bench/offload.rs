//! The table of `nmad bench offload`.

use newmadeleine::Progress;
use nmad_bench::pattern::offload::{Found, Plan, run as measure};
use nmad_bench::pattern::{BenchError, Pair};
use nmad_bench::stats::bytes;
use nmad_bench::table::Table;
use serde::Serialize;

use super::args::Offload;
use crate::output::{say, say_json, say_line};

/// One line of `--json`; times are medians in microseconds.
#[derive(Serialize)]
struct Line<'a> {
    bench: &'static str,
    bytes: usize,
    samples: usize,
    /// The fastest rail alone.
    rail: &'a str,
    alone_us: f64,
    one_core_us: f64,
    several_us: f64,
    predicted_us: Option<f64>,
    /// How often another core has posted.
    posted: u64,
    /// Part of the time of the fastest rail alone.
    saved: f64,
    saved_lower: f64,
    saved_upper: f64,
}

/// Measures, and prints at the active rank.
pub(super) fn run(pair: Pair<'_>, args: &Offload) -> Result<(), BenchError> {
    let common = &args.sizes.common;
    let plan = Plan {
        lens: args.sizes.size.clone().unwrap_or_else(|| Plan::LENS.to_vec()),
        setting: args.progress.clone().unwrap_or(Progress::Idle),
        repeat: common.repeat.unwrap_or(11),
    };
    let header =
        ["size", "best rail", "alone", "one core", "several cores", "predicted", "saved, %", "posted"];
    let mut table = Table::new("half round trip of messages that several cores post, us", &header).words([1]);
    let mut shared = false;
    measure(pair, &plan, &mut |found| {
        shared |= found.predicted_us.is_some();
        if common.json {
            return say_json("bench", &line(found));
        }
        table.row(cells(found));
    })?;
    if !pair.is_active() || common.json {
        return Ok(());
    }
    say(table);
    say_line(format_args!(
        "medians of {} turns with quartiles; saved: of the best rail's time, turn by turn;\n\
         predicted: equation (1) of P3, a dash where messages were kept together;\n\
         posted: how often another core did",
        plan.repeat
    ));
    if !shared {
        let helped = pair.session.helped();
        say_line(format_args!(
            "no message was shared out: idle cores of this rank: {}; progress: {}",
            newmadeleine::progress::list_cores(&helped.cores),
            plan.setting
        ));
    }
    Ok(())
}

fn cells(found: &Found) -> Vec<String> {
    let percent = |part: f64| format!("{:.0}", 100.0 * part);
    let saved = &found.saved;
    vec![
        bytes(found.len as u64),
        found.alone.0.clone(),
        found.alone.1.text("").to_string(),
        found.one_core.text("").to_string(),
        found.several.text("").to_string(),
        found.predicted_us.map_or("-".into(), |us| format!("{us:.1}")),
        format!("{} ({} .. {})", percent(saved.median), percent(saved.lower), percent(saved.upper)),
        found.posted.to_string(),
    ]
}

fn line(found: &Found) -> Line<'_> {
    Line {
        bench: "offload",
        bytes: found.len,
        samples: found.several.count,
        rail: &found.alone.0,
        alone_us: found.alone.1.median,
        one_core_us: found.one_core.median,
        several_us: found.several.median,
        predicted_us: found.predicted_us,
        posted: found.posted,
        saved: found.saved.median,
        saved_lower: found.saved.lower,
        saved_upper: found.saved.upper,
    }
}
