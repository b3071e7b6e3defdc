//! What `nmad bench regret` measures, and its picture.

use newmadeleine::Options;
use nmad_bench::pattern::regret::{Plan, run as measure};
use nmad_bench::pattern::{BenchError, Entry, Pair, Row};
use nmad_bench::plot::{Point, Role, Series, ratio_svg};
use nmad_bench::stats::Summary;
use std::path::Path;

use super::args::Regret;

/// What a figure is.
pub(super) fn title(args: &Regret) -> &'static str {
    if args.window > 1 { "half round trip of a window of messages" } else { "half round trip" }
}

/// Measures; the active rank draws.
pub(super) fn run(pair: Pair<'_>, args: &Regret, each: &mut dyn FnMut(&Row)) -> Result<(), BenchError> {
    let common = &args.sizes.common;
    let named = match &common.strategy[..] {
        [] => pair.session.strategies(),
        named => named.to_vec(),
    };
    let plan = Plan {
        lens: args.sizes.size.clone().unwrap_or_else(|| Plan::lens(args.window)),
        window: args.window,
        repeat: common.repeat.unwrap_or(11),
        judged: Options::DEFAULT_STRATEGY.into(),
        others: named,
    };
    let mut rows = Vec::new();
    measure(pair, &plan, &mut |row| {
        each(row);
        rows.push(row.clone());
    })?;
    match &args.svg {
        Some(path) if pair.is_active() => draw(path, title(args), &rows),
        _ => Ok(()),
    }
}

fn draw(path: &Path, title: &str, rows: &[Row]) -> Result<(), BenchError> {
    let fail =
        |why: &dyn std::fmt::Display| BenchError::Job(format!("cannot write {}: {why}", path.display()));
    let svg =
        ratio_svg(&format!("{title}, relative to the fastest way"), &series(rows)).map_err(|e| fail(&e))?;
    nmad_words::file::write(path, svg).map_err(|e| fail(&e))
}

/// A curve for each way, turn by turn relative to the one with the least median.
fn series(rows: &[Row]) -> Vec<Series> {
    let Some(first) = rows.first() else { return Vec::new() };
    let one = |(place, entry): (usize, &Entry)| {
        let points = rows.iter().filter_map(|row| Some(point(row.len, relative(row, place)?)));
        let role = if place == 0 { Role::Main } else { Role::Plain };
        Series { label: entry.name.clone(), role, points: points.collect() }
    };
    first.entries.iter().enumerate().map(one).collect()
}

fn relative(row: &Row, place: usize) -> Option<Summary> {
    let median = |entry: &&Entry| entry.summary().median;
    let fastest = row.entries.iter().min_by(|a, b| median(a).total_cmp(&median(b)))?;
    row.entries.get(place)?.beside(fastest, |ours, theirs| ours / theirs)
}

fn point(len: usize, summary: Summary) -> Point {
    let Summary { median, lower, upper, .. } = summary;
    Point { len: len as u64, value: median, quartiles: Some((lower, upper)) }
}
