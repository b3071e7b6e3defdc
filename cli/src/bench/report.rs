//! What a benchmark prints: a table for people, or an object a line for programs.

use nmad_bench::pattern::{Entry, Row};
use nmad_bench::stats::{Summary, bytes};
use nmad_bench::table::Table;
use serde::Serialize;

use crate::output::{say, say_json, say_line};
use crate::progress::Progress;

/// Which figures are good ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Better {
    /// Times: compared by their difference.
    Less,
    /// Times: compared by their ratio.
    Ratio,
    /// Rates: compared by their ratio.
    More,
}

/// Collects rows and prints them.
pub(super) struct Report {
    json: bool,
    /// The strategy of the session, in force unless others are named.
    strategy: String,
    rails: Vec<String>,
    bench: &'static str,
    what: &'static str,
    unit: &'static str,
    better: Better,
    rows: Vec<Row>,
    progress: Progress,
}

/// One line of JSON: what NewMadeleine reached under one strategy, and what it is compared with.
#[derive(Serialize)]
struct Line<'a> {
    bench: &'a str,
    rails: &'a [String],
    strategy: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<usize>,
    unit: &'a str,
    median: f64,
    lower: f64,
    upper: f64,
    samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Beside<'a>>,
    /// The yardsticks that are not as good as that one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<Beside<'a>>,
}

/// The yardstick.
#[derive(Serialize)]
struct Beside<'a> {
    name: &'a str,
    median: f64,
    lower: f64,
    upper: f64,
    /// Median of ours less theirs, turn by turn.
    difference: f64,
    /// Median of ours by theirs, turn by turn.
    ratio: f64,
}

impl Report {
    pub(super) fn new(json: bool, strategy: String, rails: Vec<String>) -> Report {
        let (bench, what, unit, better) = ("", "", "", Better::Less);
        let progress = Progress::hidden();
        Report { json, strategy, rails, bench, what, unit, better, rows: Vec::new(), progress }
    }

    /// Names the benchmark.
    pub(super) fn of(
        mut self,
        bench: &'static str,
        what: &'static str,
        unit: &'static str,
        better: Better,
    ) -> Report {
        (self.bench, self.what, self.unit, self.better) = (bench, what, unit, better);
        self
    }

    /// Takes the next row.
    pub(super) fn row(&mut self, row: &Row) {
        if self.json {
            return row.ours().for_each(|ours| say_json("bench", &self.line(row, ours)));
        }
        if self.rows.is_empty() {
            // Not before there is something to tell.
            self.progress = Progress::new(&format!("bench {}", self.bench), "{spinner} {msg}", 0).steadily();
        }
        let text = format!("{} done", self.subject(row));
        self.progress.step(&text);
        self.rows.push(row.clone());
    }

    /// Prints the table.
    pub(super) fn end(&self) {
        self.progress.end();
        if !self.json {
            say(self.table());
            say_line(self.explanation());
        }
    }

    fn is_multiseg(&self) -> bool {
        self.bench == "multiseg"
    }

    fn subject(&self, row: &Row) -> String {
        if self.is_multiseg() { format!("{} messages", row.len) } else { bytes(row.len as u64) }
    }

    fn yardstick<'r>(&self, row: &'r Row) -> Option<&'r Entry> {
        row.yardstick(|a, b| match self.better {
            Better::Less | Better::Ratio => a < b,
            Better::More => a > b,
        })
    }

    fn strategy<'s>(&'s self, ours: &'s Entry) -> &'s str {
        if ours.name == "NewMadeleine" { &self.strategy } else { &ours.name }
    }

    fn table(&self) -> Table {
        let title = format!("{} over {}, {}", self.what, self.rails.join(" + "), self.unit);
        let comparison = match self.better {
            Better::Less => "difference",
            _ => "ratio",
        };
        let first = if self.is_multiseg() { "messages" } else { "size" };
        let header = [first, "strategy", "NewMadeleine", "beside", "", comparison];
        let mut table = Table::new(title, &header).words([1, 3]);
        for row in &self.rows {
            for ours in row.ours() {
                table.row(self.cells(row, ours));
            }
        }
        table
    }

    fn cells(&self, row: &Row, ours: &Entry) -> Vec<String> {
        let mut cells = vec![self.subject(row), self.strategy(ours).to_string(), figure(&ours.summary())];
        if let Some(theirs) = self.yardstick(row) {
            cells.extend([theirs.name.clone(), figure(&theirs.summary())]);
            let compared = match self.better {
                Better::Less => ours.beside(theirs, |a, b| a - b),
                _ => ours.beside(theirs, |a, b| a / b),
            };
            cells.extend(compared.map(|summary| summary.text("").to_string()));
        }
        cells
    }

    fn explanation(&self) -> String {
        let turns = self.rows.first().and_then(|row| row.entries.first()).map_or(0, |e| e.samples.len());
        let better = if self.better == Better::More { "more" } else { "less" };
        format!("medians and quartiles of {turns} turns; {better} is better")
    }

    fn line<'a>(&'a self, row: &'a Row, ours: &'a Entry) -> Line<'a> {
        let Summary { median, lower, upper, count, .. } = ours.summary();
        let (bytes, messages) =
            if self.is_multiseg() { (None, Some(row.len)) } else { (Some(row.len), None) };
        let best = self.yardstick(row);
        let is_other = |theirs: &&Entry| best.is_none_or(|best| best.name != theirs.name);
        let others = row.yardsticks().filter(is_other);
        Line {
            bench: self.bench,
            rails: &self.rails,
            strategy: self.strategy(ours),
            bytes,
            messages,
            unit: self.unit,
            median,
            lower,
            upper,
            samples: count,
            beside: best.map(|theirs| beside(ours, theirs)),
            others: others.map(|theirs| beside(ours, theirs)).collect(),
        }
    }
}

fn beside<'a>(ours: &Entry, theirs: &'a Entry) -> Beside<'a> {
    let Summary { median, lower, upper, .. } = theirs.summary();
    let middle = |join: fn(f64, f64) -> f64| ours.beside(theirs, join).map_or(0.0, |summary| summary.median);
    let (difference, ratio) = (middle(|a, b| a - b), middle(|a, b| a / b));
    Beside { name: &theirs.name, median, lower, upper, difference, ratio }
}

fn figure(summary: &Summary) -> String {
    summary.text("").to_string()
}
