//! The pictures that compare MAD-MPI with other MPIs, from a table of figures (docs/img/comparison.tsv).
//!
//! A line is a section, the number of the round, a library, a case and microseconds, separated by tabs; one
//! that begins with `#` is a comment. This module reads such a table; it never measures.

use crate::plot::{Dot, DotGroup, PlotError, Point, Role, Series, bandwidth_svg, dots_svg};
use crate::stats::Summary;

/// What the table calls MAD-MPI: `ours:` and the binary interface.
const OURS: &str = "ours";
/// The name that stands for plain sockets over all rails at once.
const PLAIN: &str = "plain";

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where it was measured.
    pub section: String,
    /// The library.
    pub library: String,
    /// The name of the case that was measured.
    pub case: String,
    /// How long it took, in microseconds.
    pub us: f64,
}

/// Reads a table.
///
/// # Errors
/// The first line that is not one of a table, with what it should be.
pub fn read(text: &str) -> Result<Vec<Record>, String> {
    let lines =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            record(line).ok_or_else(|| {
                format!(
                    "line {}: not `section, round, library, case, microseconds`, separated by tabs",
                    index + 1
                )
            })
        })
        .collect()
}

fn record(line: &str) -> Option<Record> {
    let [section, round, library, case, us] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
    round.parse::<u32>().ok()?;
    let us = us.trim().parse().ok().filter(|us: &f64| us.is_finite() && *us > 0.0)?;
    Some(Record { section: section.into(), library: library.into(), case: case.into(), us })
}

/// The two pictures of README, by the names of their files.
///
/// # Errors
/// When one cannot be drawn.
pub fn pictures(records: &[Record]) -> Result<[(&'static str, String); 2], PlotError> {
    let cases = [
        ("pingpong - 8 B", "8 B, half round trip"),
        ("oneway w64 8 B", "8 B, a message in a window of 64"),
        ("rate c16 64 B", "64 B, a message over 16 communicators"),
        ("types mixed 32 KiB", "32 KiB in blocks of 64 B and 16 KiB, half round trip"),
    ];
    Ok([
        (
            "comparison-rails.svg",
            bandwidth("Two rails of 4 + 1 Gbit/s, one way: more is better", records, "rails")?,
        ),
        (
            "comparison-small.svg",
            times("One rail between two hosts, TCP: less is better", records, "hosts", &cases)?,
        ),
    ])
}

/// Bandwidth over the message size, of the cases of `section` whose name ends with a length (`ping-pong 1
/// MiB`).
///
/// # Errors
/// When the picture cannot be drawn.
pub fn bandwidth(title: &str, records: &[Record], section: &str) -> Result<String, PlotError> {
    let of_section = || records.iter().filter(|record| record.section == section);
    let mut all: Vec<Series> = Vec::new();
    for library in distinct(of_section().map(|record| &*record.library)) {
        let mut points: Vec<Point> = Vec::new();
        let cases = distinct(of_section().filter(|r| r.library == library).map(|r| &*r.case));
        for (case, len) in cases.iter().filter_map(|case| Some((*case, length(case)?))) {
            let rates: Vec<f64> = of_section()
                .filter(|record| record.library == library && record.case == case)
                .map(|record| len as f64 / record.us)
                .collect();
            let Some(summary) = Summary::of(&rates) else { continue };
            let quartiles = (summary.count > 1).then_some((summary.lower, summary.upper));
            points.push(Point { len, value: summary.median, quartiles });
        }
        let role = match library {
            PLAIN => Role::Baseline,
            _ if is_ours(library) => Role::Main,
            _ => Role::Plain,
        };
        all.push(Series { label: title_of(library), role, points });
    }
    bandwidth_svg(title, &all)
}

/// Times of the given cases of `section`, each with the name that the picture gives it.
///
/// # Errors
/// When the picture cannot be drawn.
pub fn times(
    title: &str,
    records: &[Record],
    section: &str,
    cases: &[(&str, &str)],
) -> Result<String, PlotError> {
    let group = |(case, label): &(&str, &str)| {
        let of_case = || records.iter().filter(|record| record.section == section && record.case == *case);
        let dot = |library: &str| {
            let us: Vec<f64> = of_case().filter(|r| r.library == library).map(|record| record.us).collect();
            let summary = Summary::of(&us)?;
            Some(Dot { label: title_of(library), is_main: is_ours(library), summary })
        };
        let dots = distinct(of_case().map(|record| &*record.library)).into_iter().filter_map(dot).collect();
        DotGroup { label: (*label).into(), dots }
    };
    let groups: Vec<DotGroup> = cases.iter().map(group).filter(|group| !group.dots.is_empty()).collect();
    dots_svg(title, &groups)
}

/// The values in order of their first appearance.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

fn is_ours(library: &str) -> bool {
    library.split(':').next() == Some(OURS)
}

/// The name of a library as its authors write it.
fn title_of(library: &str) -> String {
    match library {
        PLAIN => "plain sockets, both rails".into(),
        "openmpi" => "Open MPI".into(),
        "mpich" => "MPICH".into(),
        _ if is_ours(library) => "MAD-MPI".into(),
        other => other.into(),
    }
}

/// The length in bytes at the end of a case's name.
fn length(case: &str) -> Option<u64> {
    let mut words = case.rsplit(' ');
    let shift = match words.next()? {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        _ => return None,
    };
    words.next()?.parse::<u64>().ok().map(|count| count << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_none_of_a_table_are_named() {
        let good = "# from a run\nrails\t1\tours:standard\tping-pong 1 MiB\t1000.5\n\n";
        let record = &read(good).expect("a table")[0];
        assert_eq!((&*record.case, record.us), ("ping-pong 1 MiB", 1000.5));
        for bad in ["rails\t1\tmpich\tx\n", "a\tone\tb\tc\t1\n", "a\t1\tb\tc\t-1\n", "a\t1\tb\tc\tNaN\n"] {
            let error = read(&format!("{good}{bad}")).expect_err(bad);
            assert!(error.starts_with("line 4:"), "{error}");
        }
    }

    #[test]
    fn lengths_end_a_name() {
        let cases = ["ping-pong 64 KiB", "ping-pong 16 MiB", "ping-pong 8 B", "barrier", "8 B, window of 64"];
        assert_eq!(cases.map(length), [Some(64 << 10), Some(16 << 20), Some(8), None, None]);
    }

    /// The pictures of README are those that `cargo run -p nmad-bench --example comparison -- docs/img`
    /// draws from the table beside them.
    #[test]
    fn the_committed_pictures_are_those_of_the_committed_table() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/img");
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
        let records = read(&text("comparison.tsv")).expect("a table");
        for (name, svg) in pictures(&records).expect("drawn") {
            assert!(text(name) == svg, "docs/img/{name} differs from what the table says: draw it again");
        }
    }
}
