//! From figures to a report: the best peer of each cell, ratios with their intervals, means.

use std::collections::{BTreeMap, HashMap};

use crate::OURS;
use crate::machine::BUSY;
use crate::modes::{ModesRow, Timed};
use crate::place::Place;
use crate::plan::{Cell, names};
use crate::report::{BEHIND, BehindRow, CellRow, FailedRow, Mean, PatternRow, Report, RoundTime};
use crate::statistics::{CERTAIN, Estimate, Middle, estimate, mean, median, middle};
use crate::store::{Figure, Store};

/// With this number of undisturbed rounds, the disturbed ones are left out.
const QUIET_ROUNDS: usize = 3;
/// A round whose two jobs found a bare line to take times that differ by more than this factor compares
/// places of cores, not libraries. A line takes four times as long between distant cores, and differs by
/// a tenth from job to job otherwise.
const ALIKE: f64 = 1.5;
/// A cell is near the best peer if its ratio is above this in some round.
const NEAR: f64 = 0.95;
/// Jobs of one library whose times differ by this factor may have two modes.
const WIDE: f64 = 1.3;

/// A cell with the logarithms of its ratios by round.
struct Judged {
    row: CellRow,
    ratios: Vec<(u32, f64)>,
}

/// Fills in what follows from the figures of `store`.
pub(crate) fn judge(store: &Store, report: Report) -> Report {
    let mut judged: Vec<Judged> =
        store.by_cell().into_iter().map(|(cell, figures)| judge_cell(cell, &figures)).collect();
    let order = order();
    judged.sort_by_cached_key(|one| key(&order, &one.row.cell));
    let with_ratio: Vec<&Judged> = judged.iter().filter(|one| one.row.ratio.is_some()).collect();
    let mut lagging: Vec<BehindRow> =
        with_ratio.iter().map(|one| behind_row(&one.row)).filter(|row| row.ratio > BEHIND).collect();
    lagging.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let (behind, undecided) = lagging.into_iter().partition(is_certain);
    let mut failed: Vec<FailedRow> = store
        .failed
        .iter()
        .map(|((who, cell), why)| FailedRow { who: who.clone(), cell: cell.clone(), why: why.clone() })
        .collect();
    failed.sort_by_cached_key(|row| (row.who.clone(), key(&order, &row.cell)));
    Report {
        rounds: store.figures.iter().map(|figure| figure.round).max().unwrap_or(0),
        contestants: store.contestants.clone(),
        failed,
        figures: store.figures.len(),
        busy_figures: store.figures.iter().filter(|figure| figure.busy > BUSY).count(),
        overall: group_mean(&with_ratio),
        patterns: groups(&with_ratio, |cell| &cell.pattern),
        places: groups(&with_ratio, |cell| &cell.place),
        behind,
        undecided,
        modes: judged.iter().filter_map(|one| modes(&one.row)).collect(),
        cells: judged.into_iter().map(|one| one.row).collect(),
        ..report
    }
}

/// Where patterns stand among all.
fn order() -> HashMap<String, usize> {
    names().into_iter().enumerate().map(|(index, name)| (name, index)).collect()
}

fn key(order: &HashMap<String, usize>, cell: &Cell) -> impl Ord + use<> {
    let number: u64 = cell.variant.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
    let kind = cell.variant.trim_end_matches(|c: char| c.is_ascii_digit()).to_string();
    let pattern = order.get(&cell.pattern).copied().unwrap_or(order.len());
    (
        Place::order_of(&cell.place),
        pattern,
        cell.pattern.clone(),
        kind,
        number,
        cell.variant.clone(),
        cell.bytes,
    )
}

fn judge_cell(cell: &Cell, figures: &BTreeMap<&str, Vec<&Figure>>) -> Judged {
    let time = |figure: &&Figure| {
        let Figure { round, us, busy, ref facts, .. } = **figure;
        RoundTime { round, us, busy, facts: facts.clone() }
    };
    let mut times: BTreeMap<String, Vec<RoundTime>> = BTreeMap::new();
    for (who, figures) in figures {
        let mut rounds: Vec<RoundTime> = figures.iter().map(time).collect();
        rounds.sort_by_key(|time| time.round);
        times.insert(who.to_string(), rounds);
    }
    let ours = times.get(OURS).map_or(&[][..], Vec::as_slice);
    let best = times
        .iter()
        .filter(|(who, _)| *who != OURS)
        .filter_map(|(who, theirs)| Some((who, compared(ours, theirs)?)))
        // The fastest: whose time, as a part of ours, is least.
        .max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    let mut row = CellRow {
        cell: cell.clone(),
        best: None,
        ratio: None,
        low: None,
        high: None,
        confidence: 0.0,
        unlike: 0,
        busy: ours.iter().any(|time| time.busy > BUSY) && quiet(ours) < QUIET_ROUNDS,
        times: BTreeMap::new(),
    };
    let mut ratios = Vec::new();
    if let Some((who, found)) = best {
        row = CellRow {
            best: Some(who.clone()),
            ratio: Some(found.median.exp()),
            low: found.interval.map(|interval| interval.low.exp()),
            high: found.interval.map(|interval| interval.high.exp()),
            confidence: found.interval.map_or(0.0, |interval| interval.confidence),
            busy: found.busy,
            unlike: found.unlike,
            ..row
        };
        ratios = found.ratios;
    }
    Judged { row: CellRow { times, ..row }, ratios }
}

fn quiet(times: &[RoundTime]) -> usize {
    times.iter().filter(|time| time.busy <= BUSY).count()
}

/// Our times beside one peer's.
struct Beside {
    ratios: Vec<(u32, f64)>,
    median: f64,
    interval: Option<Middle>,
    busy: bool,
    unlike: usize,
}

/// The ratio of one round, as a logarithm.
#[derive(Clone, Copy)]
struct Ratio {
    round: u32,
    log: f64,
    busy: bool,
    unlike: bool,
}

impl Ratio {
    fn of(our: &RoundTime, their: &RoundTime) -> Ratio {
        let line = |time: &RoundTime| time.facts.as_ref()?.line_us;
        let unlike = match (line(our), line(their)) {
            (Some(ours), Some(theirs)) => ours.max(theirs) > ALIKE * ours.min(theirs),
            _ => false,
        };
        let (log, busy) = ((our.us / their.us).ln(), our.busy.max(their.busy) > BUSY);
        Ratio { round: our.round, log, busy, unlike }
    }
}

/// Leaves out the ratios for which this holds, if enough others are left.
fn leave_out(ratios: &mut Vec<Ratio>, is_bad: fn(&Ratio) -> bool) {
    if ratios.iter().filter(|ratio| !is_bad(ratio)).count() >= QUIET_ROUNDS {
        ratios.retain(|ratio| !is_bad(ratio));
    }
}

/// Ratios of the rounds that both have; without those of a busy machine, and those whose jobs found the cores
/// in different places, if enough others are left.
fn compared(ours: &[RoundTime], theirs: &[RoundTime]) -> Option<Beside> {
    let both = ours.iter().filter(|time| time.us > 0.0).filter_map(|our| {
        let their = theirs.iter().find(|their| their.round == our.round && their.us > 0.0)?;
        Some(Ratio::of(our, their))
    });
    let mut used: Vec<Ratio> = both.collect();
    leave_out(&mut used, |ratio| ratio.busy);
    let quiet = used.len();
    leave_out(&mut used, |ratio| ratio.unlike);
    let logs: Vec<f64> = used.iter().map(|ratio| ratio.log).collect();
    Some(Beside {
        median: median(&logs)?,
        interval: middle(&logs),
        busy: used.iter().any(|ratio| ratio.busy),
        unlike: quiet - used.len(),
        ratios: used.iter().map(|ratio| (ratio.round, ratio.log)).collect(),
    })
}

/// A ratio and the ends of its interval, from logarithms.
fn ends(estimate: Estimate) -> (f64, Option<f64>, Option<f64>) {
    let Estimate { mean, half } = estimate;
    (mean.exp(), half.map(|half| (mean - half).exp()), half.map(|half| (mean + half).exp()))
}

/// The modes of the jobs in a cell.
fn modes(row: &CellRow) -> Option<ModesRow> {
    let timed = |time| {
        let RoundTime { us, facts, .. }: &RoundTime = time;
        Timed { us: *us, facts: facts.as_ref() }
    };
    let jobs = row.times.iter().map(|(who, times)| (who.as_str(), times.iter().map(timed).collect()));
    ModesRow::of(&row.cell, jobs)
}

/// Whether a cell that lags is behind for certain.
fn is_certain(row: &BehindRow) -> bool {
    row.confidence >= CERTAIN && row.low.is_some_and(|low| low > 1.0)
}

/// Whether a cell needs more jobs after the first pass: in some round MAD-MPI was about as slow as the
/// best peer, or slower.
pub(crate) fn is_near(cell: &CellRow) -> bool {
    let Some(theirs) = cell.best.as_ref().and_then(|best| cell.times.get(best)) else { return false };
    let ours = cell.times.get(OURS).into_iter().flatten();
    ours.into_iter()
        .any(|our| theirs.iter().any(|their| their.round == our.round && our.us > NEAR * their.us))
}

/// The verdict on a cell.
pub(crate) fn row(cell: &Cell, figures: &BTreeMap<&str, Vec<&Figure>>) -> CellRow {
    judge_cell(cell, figures).row
}

/// Whether further jobs can change the verdict on a cell that is near or behind, or tell its modes.
pub(crate) fn is_open(cell: &CellRow) -> bool {
    let wide = |times: &Vec<RoundTime>| {
        let us = || times.iter().map(|time| time.us);
        us().fold(0.0, f64::max) > WIDE * us().fold(f64::INFINITY, f64::min)
    };
    let is_lagging = cell.ratio.is_some_and(|ratio| ratio > BEHIND);
    is_near(cell) && (is_lagging && !is_certain(&behind_row(cell)) || cell.times.values().any(wide))
}

fn behind_row(row: &CellRow) -> BehindRow {
    BehindRow {
        cell: row.cell.clone(),
        best: row.best.clone().unwrap_or_default(),
        ratio: row.ratio.unwrap_or(1.0),
        low: row.low,
        high: row.high,
        confidence: row.confidence,
        busy: row.busy,
    }
}

/// A row for each name that cells have, in their order.
fn groups(cells: &[&Judged], name: impl Fn(&Cell) -> &str) -> Vec<PatternRow> {
    let mut rows = Vec::<(String, Vec<&Judged>)>::new();
    for cell in cells {
        let name = name(&cell.row.cell);
        match rows.iter_mut().find(|(known, _)| known == name) {
            Some((_, group)) => group.push(cell),
            None => rows.push((name.into(), vec![cell])),
        }
    }
    let row = |(name, group): (String, Vec<&Judged>)| {
        let worst =
            group.iter().map(|one| behind_row(&one.row)).max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        Some(PatternRow { name, mean: group_mean(&group)?, worst })
    };
    rows.into_iter().filter_map(row).collect()
}

/// The mean over cells; its interval is that of the means of the rounds in which every cell has a ratio.
fn group_mean(cells: &[&Judged]) -> Option<Mean> {
    let logs: Vec<f64> = cells.iter().filter_map(|one| one.row.ratio).map(f64::ln).collect();
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (round, log) in cells.iter().flat_map(|one| &one.ratios) {
        rounds.entry(*round).or_default().push(*log);
    }
    let means: Vec<f64> =
        rounds.values().filter(|logs| logs.len() == cells.len()).filter_map(|logs| mean(logs)).collect();
    let half = estimate(&means).and_then(|found| found.half);
    let (ratio, low, high) = ends(Estimate { mean: mean(&logs)?, half });
    let lagging = cells.iter().filter(|one| one.row.ratio.is_some_and(|ratio| ratio > BEHIND));
    let (behind, undecided): (Vec<bool>, Vec<bool>) =
        lagging.map(|one| is_certain(&behind_row(&one.row))).partition(|is| *is);
    Some(Mean { ratio, low, high, cells: cells.len(), behind: behind.len(), undecided: undecided.len() })
}

#[cfg(test)]
pub(crate) mod tests;
