//! The report in words, for a terminal.

use std::fmt::Write;

use crate::heat::{duration, interval};
use crate::page::{differences, mode_words, remark, rounds};
use crate::place::Place;
use crate::report::{BehindRow, PatternRow, Report};
use crate::{Change, Diff, ModesRow};

/// How many cells are listed; the page has all.
const LISTED: usize = 25;

/// What a person wants to know first.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    let machine = &report.machine;
    let _ = writeln!(text, "{}, {} cores, {}", machine.processor, machine.cores, rounds(report));
    table(&mut text, "pattern", &report.patterns, |name| name.to_string());
    table(&mut text, "place", &report.places, |name| Place::title_of(name).to_string());
    match &report.overall {
        Some(mean) => {
            let _ = writeln!(
                text,
                "\nall: {:.2}{} of the best peer's time (geometric mean of {} cells); {} cells are behind \
                 by more than 10 %, {} may be",
                mean.ratio,
                interval(mean.low, mean.high),
                mean.cells,
                mean.behind,
                mean.undecided
            );
        }
        None => {
            let _ = writeln!(text, "\nno verdict: no cell was measured by both MAD-MPI and a peer");
        }
    }
    if report.ours_failed() > 0 {
        let _ = writeln!(
            text,
            "MAD-MPI crashed or hung: {} cells without a figure, see below",
            report.ours_failed()
        );
    }
    behind(&mut text, "behind by more than 10 %", &report.behind);
    behind(&mut text, "perhaps behind by more than 10 %", &report.undecided);
    modes(&mut text, &report.modes);
    if report.busy_figures > 0 {
        let (busy, all) = (report.busy_figures, report.figures);
        let _ = writeln!(text, "\n{busy} of {all} figures were taken while others used the machine");
    }
    if !report.failed.is_empty() {
        let _ = writeln!(text, "\nwithout a figure: {} cells", report.failed.len());
        for row in report.failed.iter().take(LISTED) {
            let _ = writeln!(text, "  {} {}: {}", row.who, row.cell, row.why);
        }
    }
    for missing in &report.missing {
        let _ = writeln!(text, "missing: {missing}");
    }
    text
}

fn table(text: &mut String, title: &str, rows: &[PatternRow], name: impl Fn(&str) -> String) {
    if rows.is_empty() {
        return;
    }
    let names: Vec<String> = rows.iter().map(|row| name(&row.name)).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0).max(title.len());
    let _ = writeln!(text, "\n{title:width$}  mean  95 %           cells behind maybe  worst cell");
    for (row, name) in rows.iter().zip(&names) {
        let (mean, worst) = (&row.mean, &row.worst);
        let _ = writeln!(
            text,
            "{name:width$} {:>5.2} {:<15} {:>5} {:>6} {:>5}  {:.2} {}",
            mean.ratio,
            interval(mean.low, mean.high),
            mean.cells,
            mean.behind,
            mean.undecided,
            worst.ratio,
            worst.cell
        );
    }
}

fn behind(text: &mut String, title: &str, rows: &[BehindRow]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    for row in rows.iter().take(LISTED) {
        let remark = match remark(row) {
            remark if remark.is_empty() => remark,
            remark => format!(", {remark}"),
        };
        let interval = interval(row.low, row.high);
        let _ = writeln!(text, "  {:.2}{interval} {}, beside {}{remark}", row.ratio, row.cell, row.best);
    }
    if rows.len() > LISTED {
        let _ = writeln!(text, "  and {} more, which report.html lists", rows.len() - LISTED);
    }
}

fn modes(text: &mut String, rows: &[ModesRow]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\njobs with two modes:");
    for row in rows.iter().take(LISTED) {
        let libraries: Vec<String> =
            row.libraries.iter().map(|(who, jobs)| format!("{who} {}", mode_words(jobs))).collect();
        let _ = writeln!(text, "  {}: {}", row.cell, libraries.join("; "));
        for (who, what) in differences(row) {
            let _ = writeln!(text, "    {who}: {what}");
        }
    }
    if rows.len() > LISTED {
        let _ = writeln!(text, "  and {} more, which report.html lists", rows.len() - LISTED);
    }
}

/// What changed.
pub fn diff_text(diff: &Diff) -> String {
    let mut text = format!("before: {}\nafter:  {}\n", diff.before, diff.after);
    for remark in &diff.remarks {
        let _ = writeln!(text, "note: {remark}");
    }
    match diff.mean {
        Some(mean) => {
            let _ = writeln!(
                text,
                "{} cells compared, geometric mean {mean:.3} of the time before; {} changed for certain \
                 (5 % of these may be chance)",
                diff.compared,
                diff.changes.len()
            );
        }
        None => text.push_str("no cell has two rounds in both reports: nothing can be said\n"),
    }
    if diff.left_out > 0 {
        let _ = writeln!(text, "{} cells are in one report only, or have one round", diff.left_out);
    }
    for change in &diff.changes {
        let Change { cell, change, before_us, after_us, beside, .. } = change;
        let word = if *change < 1.0 { "faster" } else { "slower" };
        let beside = beside.as_ref().map_or_else(String::new, |peer| format!(", beside {peer}"));
        let (before, after) = (duration(*before_us), duration(*after_us));
        let _ = writeln!(text, "  {change:.2} {word}: {cell} ({before} -> {after}{beside})");
    }
    text
}
