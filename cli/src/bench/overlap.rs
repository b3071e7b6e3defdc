//! The table and the picture of `nmad bench overlap`.

use newmadeleine::Progress;
use nmad_bench::pattern::overlap::{Found, Plan, Side, run as measure};
use nmad_bench::pattern::{BenchError, Pair};
use nmad_bench::plot::{HeatMap, heat_svg};
use nmad_bench::stats::{Summary, bytes};
use nmad_bench::table::Table;
use serde::Serialize;

use super::args::Overlap;
use crate::output::{say, say_json, say_line};

/// Figures between which the picture shades.
const SHADES: (f64, f64) = (1.0, 2.0);

/// One line of `--json`; times are medians.
#[derive(Serialize)]
struct Line {
    bench: &'static str,
    bytes: usize,
    factor: f64,
    computes: &'static str,
    progress: String,
    samples: usize,
    transfer_us: f64,
    compute_us: f64,
    together_us: f64,
    /// By the longer of both.
    ratio: f64,
    ratio_lower: f64,
    ratio_upper: f64,
    /// Part of the shorter one.
    hidden: f64,
}

/// Measures, and prints at the active rank.
pub(super) fn run(pair: Pair<'_>, args: &Overlap) -> Result<(), BenchError> {
    let plan = plan(args);
    let header = [
        "size",
        "computes",
        "progress",
        "message",
        "computing",
        "together",
        "by the longer one",
        "hidden, %",
    ];
    let mut table = Table::new("a message beside computing, us", &header).words([1, 2]);
    let mut all = Vec::new();
    measure(pair, &plan, &mut |found| {
        if args.sizes.common.json {
            say_json("bench", &line(found));
        }
        table.row(cells(found));
        all.push(found.clone());
    })?;
    if !pair.is_active() {
        return Ok(());
    }
    if !args.sizes.common.json {
        say(table);
        say_line(format_args!(
            "medians of {} turns, of the last two columns with quartiles, taken turn by turn; by the longer\n\
             one: 1 is best; hidden: part of the shorter one, 100 is best",
            plan.repeat
        ));
    }
    let Some(path) = &args.svg else { return Ok(()) };
    let cannot = |why: String| BenchError::Job(format!("cannot write {}: {why}", path.display()));
    let title = "message and computing together, by the longer of both";
    let svg = heat_svg(title, &maps(&plan, &all), SHADES).map_err(|why| cannot(why.to_string()))?;
    nmad_words::file::write(path, svg).map_err(|why| cannot(why.to_string()))
}

fn plan(args: &Overlap) -> Plan {
    let or = |given: &[f64]| if given.is_empty() { Plan::FACTORS.to_vec() } else { given.to_vec() };
    Plan {
        lens: args.sizes.size.clone().unwrap_or_else(|| Plan::LENS.to_vec()),
        factors: or(&args.factor),
        sides: if args.side.is_empty() { Side::ALL.to_vec() } else { args.side.clone() },
        settings: match args.progress.is_empty() {
            true => vec![Progress::Off, Progress::Auto],
            false => args.progress.clone(),
        },
        repeat: args.sizes.common.repeat.unwrap_or(21),
    }
}

fn cells(found: &Found) -> Vec<String> {
    let us = |summary: &Summary| format!("{:.0}", summary.median);
    let percent = |part: f64| format!("{:.0}", 100.0 * part);
    let hidden = &found.hidden;
    vec![
        bytes(found.len as u64),
        found.side.name().into(),
        found.setting.to_string(),
        us(&found.transfer),
        us(&found.compute),
        us(&found.together),
        format!("{:.2} ({:.2} .. {:.2})", found.ratio.median, found.ratio.lower, found.ratio.upper),
        format!("{} ({} .. {})", percent(hidden.median), percent(hidden.lower), percent(hidden.upper)),
    ]
}

/// A map for each side and setting: sizes from left to right, lengths of computing from top to bottom.
fn maps(plan: &Plan, all: &[Found]) -> Vec<HeatMap> {
    let mut maps = Vec::new();
    for &side in &plan.sides {
        for setting in &plan.settings {
            let figure = |factor: f64, len: usize| {
                let is_it = |found: &&Found| {
                    (found.side, found.len, found.factor) == (side, len, factor) && found.setting == *setting
                };
                all.iter().find(is_it).map_or(f64::NAN, |found| found.ratio.median)
            };
            let row = |&factor: &f64| {
                let figures = plan.lens.iter().map(|&len| figure(factor, len)).collect();
                (format!("computing {factor} x message"), figures)
            };
            maps.push(HeatMap {
                title: format!("computes: {}, progress: {setting}", side.name()),
                columns: plan.lens.iter().map(|&len| bytes(len as u64)).collect(),
                rows: plan.factors.iter().map(row).collect(),
            });
        }
    }
    maps
}

fn line(found: &Found) -> Line {
    Line {
        bench: "overlap",
        bytes: found.len,
        factor: found.factor,
        computes: found.side.name(),
        progress: found.setting.to_string(),
        samples: found.together.count,
        transfer_us: found.transfer.median,
        compute_us: found.compute.median,
        together_us: found.together.median,
        ratio: found.ratio.median,
        ratio_lower: found.ratio.lower,
        ratio_upper: found.ratio.upper,
        hidden: found.hidden.median,
    }
}
