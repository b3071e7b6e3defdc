//! The report as a page of Markdown beside its pictures, for documentation that is kept with a source.

use std::fmt::Write;

use crate::heat::interval;
use crate::modes::ModesRow;
use crate::page::{differences, mode_words, remark, rounds, times};
use crate::place::Place;
use crate::report::{BehindRow, Mean, PatternRow, Report};

/// The file of the picture of a place.
pub(crate) fn picture(place: &str) -> String {
    format!("heat-{place}.svg")
}

/// The page.
pub(crate) fn markdown(report: &Report) -> String {
    let mut page = String::new();
    let machine = &report.machine;
    let _ = write!(
        page,
        "# MAD-MPI beside other MPIs\n\n{}, {} cores, Linux {}; {}; {}:\n\n    {}\n\n",
        cell(&machine.processor),
        machine.cores,
        cell(&machine.kernel),
        cell(&report.made),
        rounds(report),
        report.command
    );
    if let Some(Mean { ratio, low, high, cells, behind, undecided }) = report.overall {
        let _ = write!(
            page,
            "**{ratio:.2}**{} of the best peer's time, geometric mean of {cells} cells; {behind} of them are \
             behind by more than 10 %, {undecided} may be. ",
            interval(low, high)
        );
    }
    let _ = writeln!(page, "{}", cell(&report.method));
    let missing: Vec<String> =
        report.missing.iter().map(|text| format!("- Missing: {}", cell(text))).collect();
    let _ = write!(page, "\n{}\n\n", contestants(report).chain(missing).collect::<Vec<_>>().join("\n"));
    means(&mut page, "place", &report.places, |name| Place::title_of(name).to_string());
    means(&mut page, "pattern", &report.patterns, |name| name.to_string());
    for PatternRow { name, .. } in &report.places {
        let title = Place::title_of(name);
        let _ = write!(page, "## {title}\n\n![{title}]({})\n\n", picture(name));
    }
    behind(&mut page, "Behind by more than 10 %", &report.behind, report);
    behind(&mut page, "Perhaps behind by more than 10 %", &report.undecided, report);
    modes(&mut page, &report.modes);
    page
}

fn contestants(report: &Report) -> impl Iterator<Item = String> {
    report.contestants.iter().map(|one| format!("- {}: {}", cell(&one.name), cell(&one.identity)))
}

fn means(page: &mut String, column: &str, rows: &[PatternRow], name: impl Fn(&str) -> String) {
    let _ = writeln!(
        page,
        "| {column} | mean | 95 % | cells | behind | maybe | worst cell | |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for row in rows {
        let Mean { ratio, low, high, cells, behind, undecided } = row.mean;
        let _ = writeln!(
            page,
            "| {} | {ratio:.2} |{} | {cells} | {behind} | {undecided} | {} | {:.2} |",
            cell(&name(&row.name)),
            interval(low, high),
            row.worst.cell,
            row.worst.ratio
        );
    }
    page.push('\n');
}

fn behind(page: &mut String, title: &str, rows: &[BehindRow], report: &Report) {
    let _ = write!(
        page,
        "## {title}: {} cells\n\n| cell | ratio | interval | ours | theirs | best peer | |\n\
         |---|---|---|---|---|---|---|\n",
        rows.len()
    );
    for row in rows {
        let (ours, theirs) = times(report, row);
        let BehindRow { cell: which, best, ratio, low, high, .. } = row;
        let _ = writeln!(
            page,
            "| {which} | {ratio:.2} |{} | {ours} | {theirs} | {} | {} |",
            interval(*low, *high),
            cell(best),
            remark(row)
        );
    }
}

fn modes(page: &mut String, rows: &[ModesRow]) {
    let _ = write!(
        page,
        "\n## Jobs with two modes: {} cells\n\n| cell | who | jobs | what differed |\n|---|---|---|---|\n",
        rows.len()
    );
    for row in rows {
        let differ: Vec<(&str, String)> = differences(row).collect();
        for (who, jobs) in &row.libraries {
            let what = differ.iter().find(|(of, _)| of == who).map_or("", |(_, what)| what);
            let _ =
                writeln!(page, "| {} | {} | {} | {} |", row.cell, cell(who), mode_words(jobs), cell(what));
        }
    }
}

/// Text that a table can hold.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::cell;
    use crate::verdict::tests::{judged, rounds};

    #[test]
    fn the_page_has_the_verdict_and_names_its_pictures() {
        let mut figures = Vec::new();
        for (bytes, ours) in [(0, 0.2), (8, 1.0), (65536, 5.0)] {
            figures.extend(rounds("ours", &cell("pingpong", bytes), [ours, ours * 1.01, ours]));
            figures.extend(rounds("openmpi", &cell("pingpong", bytes), [1.0, 1.0, 1.01]));
        }
        let mut report = judged(figures);
        report.contestants.iter_mut().for_each(|one| one.identity = "4|5".into());
        let page = markdown(&report);
        for part in [
            "geometric mean of 3 cells; 0 of them are behind by more than 10 %, 1 may be",
            "| place | mean |",
            "Perhaps behind by more than 10 %: 1 cells",
            "4\\|5",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(page.matches("](heat-").count(), report.places.len());
        let rows = page.lines().filter(|line| line.starts_with('|'));
        rows.for_each(|line| {
            assert!([9, 8, 5].contains(&line.replace("\\|", "").matches('|').count()), "{line}")
        });
    }
}
