//! The table of `nmad bench interference`.

use newmadeleine::Progress;
use nmad_bench::pattern::interference::{Found, Plan, run as measure};
use nmad_bench::pattern::{BenchError, Pair};
use nmad_bench::stats::bytes;
use nmad_bench::table::Table;
use serde::Serialize;

use super::args::Interference;
use crate::output::{say, say_json, say_line};

/// One line of `--json`; times are medians in microseconds.
#[derive(Serialize)]
struct Line {
    bench: &'static str,
    kernel: &'static str,
    bytes: usize,
    progress: String,
    samples: usize,
    off_us: f64,
    on_us: f64,
    /// By which part the kernel is slower, turn by turn.
    slower: f64,
    slower_lower: f64,
    slower_upper: f64,
}

/// Measures, and prints at the active rank.
pub(super) fn run(pair: Pair<'_>, args: &Interference) -> Result<(), BenchError> {
    let common = &args.sizes.common;
    let settings =
        if args.progress.is_empty() { vec![Progress::Auto, Progress::Idle] } else { args.progress.clone() };
    let lens = args.sizes.size.clone().unwrap_or_else(|| Plan::LENS.to_vec());
    let plan = Plan { lens, settings, repeat: common.repeat.unwrap_or(21) };
    let header = ["bound by", "message", "progress", "off", "on", "slower, %"];
    let mut table = Table::new("a program beside progress in the background, us", &header).words([0, 2]);
    measure(pair, &plan, &mut |found| {
        if common.json {
            return say_json("bench", &line(found));
        }
        table.row(cells(found));
    })?;
    if pair.is_active() && !common.json {
        say(table);
        say_line(format_args!(
            "medians of {} turns; slower: than with progress off, turn by turn, with quartiles;\n\
             message 0 B: nothing is in flight",
            plan.repeat
        ));
    }
    Ok(())
}

fn cells(found: &Found) -> Vec<String> {
    let percent = |part: f64| format!("{:.1}", 100.0 * part);
    let slower = &found.slower;
    vec![
        found.kernel.name().into(),
        bytes(found.len as u64),
        found.setting.to_string(),
        format!("{:.0}", found.off.median),
        format!("{:.0}", found.on.median),
        format!("{} ({} .. {})", percent(slower.median), percent(slower.lower), percent(slower.upper)),
    ]
}

fn line(found: &Found) -> Line {
    Line {
        bench: "interference",
        kernel: found.kernel.name(),
        bytes: found.len,
        progress: found.setting.to_string(),
        samples: found.on.count,
        off_us: found.off.median,
        on_us: found.on.median,
        slower: found.slower.median,
        slower_lower: found.slower.lower,
        slower_upper: found.slower.upper,
    }
}
