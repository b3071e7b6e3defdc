//! The tables and the picture of `nmad bench failover`.

use nmad_bench::pattern::failover::{Found, Plan, run as measure};
use nmad_bench::pattern::{BenchError, Pair};
use nmad_bench::plot::{Distribution, distribution_svg};
use nmad_bench::stats::{Summary, bytes, number, percentile};
use nmad_bench::table::Table;
use nmad_testbed::{Change, Inside};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::args::Failover;
use crate::output::{FAILED, Failure, complain, json, say, say_json, say_line};
use crate::stage::Stage;

/// Promised bounds: the first one for 99 of 100 stalls, the second one for all.
const BOUNDS_MS: [f64; 2] = [50.0, 200.0];

/// One line of `--json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    bench: String,
    bytes: usize,
    both_ways: bool,
    rail: u32,
    failure: String,
    pause_ms: f64,
    stall_ms: f64,
    before_mb_per_s: f64,
    away_mb_per_s: f64,
    /// From the end of the failure until the rate was whole again.
    whole_after_ms: Option<f64>,
}

/// Starts a job for each failure of a size: a rail that fails again and again within seconds is used less and
/// less, and that is another question.
pub(super) fn main(args: &Failover, stage: &Stage) -> ExitCode {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(why) => return complain("bench", &format!("a temporary folder: {why}"), FAILED),
    };
    let file = folder.path().join("found");
    let mut all = Vec::new();
    for moment in 0..args.moments as u64 {
        for len in args.lens() {
            let code = stage.run(&words(args, len, args.seed + moment, &file), &stage.testbed());
            if code != ExitCode::SUCCESS {
                return code;
            }
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            for line in text.lines().filter(|_| args.sizes.common.json) {
                say_line(line);
            }
            all.extend(text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()));
        }
    }
    all.sort_by_key(|line| (line.bytes, line.both_ways));
    match show(args, &all) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::from(error).complain("bench"),
    }
}

/// The command line of one job.
fn words(args: &Failover, len: usize, seed: u64, file: &Path) -> Vec<OsString> {
    let mut words = vec!["bench".to_owned(), "failover".to_owned(), "--moments=1".to_owned()];
    words.extend([format!("--size={len}"), format!("--seed={seed}")]);
    words.extend(args.sizes.common.driver.words());
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    words.extend(["--into".into(), file.into()]);
    words
}

/// Measures in a job; the active rank prints what was found, or writes it to the file of [`main`].
pub(super) fn run(pair: Pair<'_>, args: &Failover) -> Result<(), BenchError> {
    let inside = Inside::from_env().map_err(|error| BenchError::Job(error.to_string()))?;
    let rails = inside.as_ref().and_then(|inside| inside.hosts.first()?.rails().ok());
    let (Some(inside), Some(rails)) = (inside, rails.filter(|rails| rails.len() > 1)) else {
        let text = "rails fail in a testbed with two rails at least: nmad bench failover --rails 1gbit,1gbit";
        return Err(BenchError::Job(text.into()));
    };
    let plan = Plan { lens: args.lens(), moments: args.moments, seed: args.seed };
    let make = |change: &Change| inside.set(change).map_err(|error| error.to_string());
    let mut all = Vec::new();
    measure(pair, &plan, rails.len() as u32, &make, &mut |found| {
        if args.sizes.common.json {
            say_json("bench", &line(found));
        }
        all.push(line(found));
    })?;
    match &args.into {
        _ if !pair.is_active() => Ok(()),
        Some(path) => {
            let lines: Vec<String> = all.iter().map(|line| json("bench", line)).collect();
            nmad_words::file::write(path, lines.join("\n")).map_err(|why| cannot_write(path, &why))
        }
        None => show(args, &all),
    }
}

fn show(args: &Failover, all: &[Line]) -> Result<(), BenchError> {
    if !args.sizes.common.json {
        print(all);
    }
    let Some(path) = &args.svg else { return Ok(()) };
    let svg = distribution_svg("share of stalls that are at most so long", &distributions(all), &BOUNDS_MS);
    let svg = svg.map_err(|why| cannot_write(path, &why))?;
    nmad_words::file::write(path, svg).map_err(|why| cannot_write(path, &why))
}

fn cannot_write(path: &Path, why: &dyn std::fmt::Display) -> BenchError {
    BenchError::Job(format!("cannot write {}: {why}", path.display()))
}

fn ms(length: Duration) -> f64 {
    length.as_secs_f64() * 1e3
}

fn line(found: &Found) -> Line {
    Line {
        bench: "failover".into(),
        bytes: found.len,
        both_ways: found.both,
        rail: found.episode.rail,
        failure: found.episode.how.to_string(),
        pause_ms: ms(found.pause),
        stall_ms: ms(found.stall),
        before_mb_per_s: found.rates.0 / 1e6,
        away_mb_per_s: found.rates.1 / 1e6,
        whole_after_ms: found.whole.map(ms),
    }
}

fn case(line: &Line) -> String {
    format!("{}, {}", bytes(line.bytes as u64), if line.both_ways { "both ways" } else { "one way" })
}

/// The failures of each case, in the order in which the cases came.
fn by(all: &[Line], key: impl Fn(&Line) -> String) -> Vec<(String, Vec<Line>)> {
    let mut groups: Vec<(String, Vec<Line>)> = Vec::new();
    for line in all {
        match groups.iter_mut().find(|(known, _)| *known == key(line)) {
            Some((_, group)) => group.push(line.clone()),
            None => groups.push((key(line), vec![line.clone()])),
        }
    }
    groups
}

fn stalls(group: &[Line]) -> Vec<f64> {
    group.iter().map(|line| line.stall_ms).collect()
}

fn distributions(all: &[Line]) -> Vec<Distribution> {
    let groups = by(all, case).into_iter();
    groups.map(|(label, group)| Distribution { label, times_ms: stalls(&group) }).collect()
}

fn print(all: &[Line]) {
    let header =
        ["messages", "failures", "median", "95 %", "99 %", "longest", "MB/s before", "away", "whole after"];
    let mut table = Table::new("stalls when one of several rails fails, ms", &header);
    for (label, group) in by(all, case) {
        let rate = |of: fn(&Line) -> f64| median(group.iter().map(of));
        let whole: Vec<f64> = group.iter().filter_map(|line| line.whole_after_ms).collect();
        let whole_text = match group.len() - whole.len() {
            0 => median(whole.iter().copied()),
            missed => format!("{} ({missed} not)", median(whole.iter().copied())),
        };
        let figures = [rate(|line| line.before_mb_per_s), rate(|line| line.away_mb_per_s), whole_text];
        table.row(row(label, &group).into_iter().chain(figures));
    }
    say(table);
    let mut table = Table::new("by failure", &header[..6]);
    let mut ways = by(all, |line| line.failure.clone());
    ways.push(("all".into(), all.to_vec()));
    for (label, group) in ways {
        table.row(row(label, &group));
    }
    say(table);
    let [first, second] = BOUNDS_MS.map(|bound| all.iter().filter(|line| line.stall_ms <= bound).count());
    say_line(format_args!(
        "{first} of {} stalls within {} ms, {second} within {} ms. A stall is the longest pause between two\n\
         messages from the failure on, less the time of a message on the rail that is left. Rates and\n\
         times from the return of a rail to the full rate are medians.",
        all.len(),
        BOUNDS_MS[0],
        BOUNDS_MS[1]
    ));
}

fn row(label: String, group: &[Line]) -> Vec<String> {
    let stalls = stalls(group);
    let at = |percent| percentile(&stalls, percent).map_or("-".into(), number);
    vec![label, group.len().to_string(), at(50), at(95), at(99), at(100)]
}

fn median(values: impl Iterator<Item = f64>) -> String {
    Summary::of(&values.collect::<Vec<_>>()).map_or("-".into(), |summary| number(summary.median))
}
