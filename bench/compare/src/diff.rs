//! Two reports compared, before and after a change: which cells changed for certain.

use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

use crate::OURS;
use crate::plan::Cell;
use crate::report::{CellRow, Report, RoundTime};
use crate::statistics::{Pair, mean, median, significant};

/// The comparison.
#[derive(Debug, Serialize)]
pub struct Diff {
    /// When the first report was made, and with which version.
    pub before: String,
    /// The second one.
    pub after: String,
    /// What makes the two hard to compare.
    pub remarks: Vec<String>,
    /// Cells that both have with two rounds or more.
    pub compared: usize,
    /// The geometric mean of their changes: below 1 is faster now.
    pub mean: Option<f64>,
    /// Cells that only one has, or with one round.
    pub left_out: usize,
    /// The significant changes, the largest first.
    pub changes: Vec<Change>,
}

/// A cell that changed.
#[derive(Debug, Serialize)]
pub struct Change {
    /// Which one.
    #[serde(flatten)]
    pub cell: Cell,
    /// Our time after to our time before: below 1 is faster now.
    pub change: f64,
    /// How probable such a change is by chance.
    pub probability: f64,
    /// Mean of our times before, in microseconds.
    pub before_us: f64,
    /// And after.
    pub after_us: f64,
    /// The peer by whose times both were divided, so that a slower machine is no change; none if there is
    /// none.
    pub beside: Option<String>,
}

/// A cell of both, as logarithms of ours, or of ours by the peer's.
struct Both<'a> {
    cell: &'a Cell,
    before: Vec<f64>,
    after: Vec<f64>,
    before_us: f64,
    after_us: f64,
    beside: Option<String>,
}

impl Diff {
    /// What changed from `before` to `after`.
    pub fn of(before: &Report, after: &Report) -> Diff {
        let rows: HashMap<&Cell, &CellRow> = before.cells.iter().map(|row| (&row.cell, row)).collect();
        let peers = common_peers(before, after);
        let pairs = after.cells.iter().filter_map(|row| both(rows.get(&row.cell)?, row, &peers));
        let all: Vec<Both<'_>> = pairs.collect();
        let usual = usual_variances(&all);
        let tested: Vec<(&Both<'_>, f64, f64)> = all
            .iter()
            .filter_map(|both| {
                let usual = usual[&group(both.cell)];
                let (change, p) = Pair { before: &both.before, after: &both.after, usual }.test()?;
                Some((both, change, p))
            })
            .collect();
        let is_significant = significant(&tested.iter().map(|(_, _, p)| *p).collect::<Vec<_>>());
        let chosen = tested.iter().zip(is_significant).filter(|(_, is_significant)| *is_significant);
        let mut changes: Vec<Change> = chosen.map(|((both, change, p), _)| row(both, *change, *p)).collect();
        changes.sort_by(|a, b| b.change.ln().abs().total_cmp(&a.change.ln().abs()));
        let union =
            before.cells.len() + after.cells.iter().filter(|row| !rows.contains_key(&row.cell)).count();
        Diff {
            before: title(before),
            after: title(after),
            remarks: remarks(before, after),
            compared: tested.len(),
            mean: mean(&tested.iter().map(|(_, change, _)| *change).collect::<Vec<_>>()).map(f64::exp),
            left_out: union - tested.len(),
            changes,
        }
    }
}

fn title(report: &Report) -> String {
    let ours = report.contestants.iter().find(|one| one.name == OURS);
    format!("{} ({})", report.made, ours.map_or("", |ours| &ours.identity))
}

fn remarks(before: &Report, after: &Report) -> Vec<String> {
    let mut remarks = Vec::new();
    if before.machine != after.machine {
        let (a, b) = (&before.machine, &after.machine);
        remarks.push(format!(
            "different machines: {} ({}) and {} ({})",
            a.host, a.processor, b.host, b.processor
        ));
    }
    for (name, report) in [("first", before), ("second", after)] {
        if report.busy_figures * 10 > report.figures {
            let (busy, all) = (report.busy_figures, report.figures);
            remarks.push(format!("{busy} of {all} figures of the {name} report are those of a busy machine"));
        }
    }
    remarks
}

/// Peers that are the same in both.
fn common_peers<'a>(before: &'a Report, after: &Report) -> Vec<&'a str> {
    let is_common = |name: &str, identity: &str| {
        name != OURS && after.contestants.iter().any(|one| one.name == name && one.identity == identity)
    };
    let common = before.contestants.iter().filter(|one| is_common(&one.name, &one.identity));
    common.map(|one| one.name.as_str()).collect()
}

fn both<'a>(before: &'a CellRow, after: &CellRow, peers: &[&str]) -> Option<Both<'a>> {
    let (ours_before, ours_after) = (before.times.get(OURS)?, after.times.get(OURS)?);
    let best = before.best.as_deref().filter(|best| peers.contains(best));
    let divided = best.and_then(|best| {
        let logs = |row: &CellRow, ours: &[RoundTime]| Some(beside(ours, row.times.get(best)?));
        let (a, b) = (logs(before, ours_before)?, logs(after, ours_after)?);
        (a.len() > 1 && b.len() > 1).then(|| (a, b, Some(best.to_string())))
    });
    let logs = |times: &[RoundTime]| -> Vec<f64> {
        times.iter().filter(|time| time.us > 0.0).map(|time| time.us.ln()).collect()
    };
    let (logs_before, logs_after) = (logs(ours_before), logs(ours_after));
    let (before_us, after_us) = (mean(&logs_before)?.exp(), mean(&logs_after)?.exp());
    let (a, b, beside) = divided.unwrap_or((logs_before, logs_after, None));
    let is_enough = a.len() > 1 && b.len() > 1;
    is_enough.then_some(Both { cell: &before.cell, before: a, after: b, before_us, after_us, beside })
}

/// Ours by theirs, round by round.
fn beside(ours: &[RoundTime], theirs: &[RoundTime]) -> Vec<f64> {
    let ratio = |our: &RoundTime| {
        let their = theirs.iter().find(|their| their.round == our.round && their.us > 0.0)?;
        (our.us > 0.0).then(|| (our.us / their.us).ln())
    };
    ours.iter().filter_map(ratio).collect()
}

fn group(cell: &Cell) -> (String, String) {
    (cell.place.clone(), cell.pattern.clone())
}

/// The median variance of the cells of one place and pattern.
fn usual_variances(all: &[Both<'_>]) -> BTreeMap<(String, String), f64> {
    let mut groups: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for both in all {
        let (variance, _) = Pair::pooled(&both.before, &both.after).unwrap_or_default();
        groups.entry(group(both.cell)).or_default().push(variance);
    }
    groups.into_iter().map(|(group, variances)| (group, median(&variances).unwrap_or(0.0))).collect()
}

fn row(both: &Both<'_>, change: f64, probability: f64) -> Change {
    Change {
        cell: both.cell.clone(),
        change: change.exp(),
        probability,
        before_us: both.before_us,
        after_us: both.after_us,
        beside: both.beside.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Figure;
    use crate::store::tests::cell;
    use crate::verdict::tests::{judged, rounds};

    /// Twenty cells of which the spread is 1 %; those of `slower` bytes take half as long again.
    fn report(slower: Option<u64>, machine: f64) -> Report {
        let mut figures: Vec<Figure> = Vec::new();
        for bytes in 1..=20 {
            let cell = cell("pingpong", bytes);
            let ours = if slower == Some(bytes) { 1.5 } else { 1.0 } * machine;
            // Another spread for each cell, so that no two are alike.
            let wobble = 1.0 + (bytes as f64 * 7.0 % 5.0) / 500.0;
            figures.extend(rounds("ours", &cell, [ours, ours * wobble, ours / wobble]));
            figures.extend(rounds("openmpi", &cell, [machine, machine * 1.005, machine * 0.995]));
        }
        judged(figures)
    }

    #[test]
    fn only_what_changed_is_listed_and_a_slower_machine_is_no_change() {
        let diff = Diff::of(&report(None, 1.0), &report(Some(7), 1.3));
        assert_eq!((diff.compared, diff.left_out), (20, 0));
        let changed: Vec<u64> = diff.changes.iter().map(|change| change.cell.bytes).collect();
        assert_eq!(changed, [7]);
        let change = &diff.changes[0];
        assert!((change.change - 1.5).abs() < 0.02 && change.probability < 0.001, "{change:?}");
        assert_eq!(change.beside.as_deref(), Some("openmpi"));
        assert!((change.after_us / change.before_us - 1.95).abs() < 0.05, "{change:?}");
        assert!((diff.mean.unwrap() - 1.5f64.powf(0.05)).abs() < 0.01);
    }

    #[test]
    fn a_report_has_not_changed_from_itself() {
        let same = report(Some(3), 1.0);
        assert!(Diff::of(&same, &same).changes.is_empty());
    }

    #[test]
    fn without_a_common_peer_times_are_compared() {
        let cell = cell("bcast", 8);
        let before = judged(rounds("ours", &cell, [1.0, 1.01, 0.99]));
        let after = judged(rounds("ours", &cell, [0.5, 0.505, 0.495]));
        let diff = Diff::of(&before, &after);
        assert_eq!(diff.changes.len(), 1);
        assert!((diff.changes[0].change - 0.5).abs() < 0.01 && diff.changes[0].beside.is_none());
        let once = judged(vec![crate::store::tests::figure("ours", cell, 1, 1.0)]);
        let diff = Diff::of(&before, &once);
        assert_eq!((diff.compared, diff.left_out), (0, 1));
    }
}
