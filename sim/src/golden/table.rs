//! The text of a figure: the simulated setup, our numbers beside the paper's, and whether the paper's
//! claims hold.

use std::fmt::Write;

/// A figure as text, built from top to bottom.
#[derive(Debug)]
pub struct Table {
    text: String,
}

/// One column of a series.
pub type Column<'a> = (&'a str, Vec<String>);

impl Table {
    /// Begins with a title and the model that serves it.
    pub fn new(title: &str, model: &str) -> Table {
        Table { text: format!("{title}\nmodel: {model}\n") }
    }

    /// Lines of prose.
    pub fn note(&mut self, text: &str) {
        self.text.push('\n');
        for line in wrapped(text, 100) {
            let _ = writeln!(self.text, "{line}");
        }
    }

    /// Columns of equal length, each with its head, right-aligned.
    pub fn series(&mut self, columns: &[Column<'_>]) {
        let width = |(head, cells): &Column<'_>| {
            cells.iter().map(|cell| cell.chars().count()).chain([head.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = columns.iter().map(width).collect();
        let rows = columns.first().map_or(0, |column| column.1.len());
        self.text.push('\n');
        let heads = columns.iter().map(|column| column.0);
        self.row(heads, &widths);
        for row in 0..rows {
            self.row(columns.iter().map(|column| column.1[row].as_str()), &widths);
        }
    }

    /// Rows of cells under their heads, right-aligned.
    pub fn rows(&mut self, heads: &[&str], rows: &[impl AsRef<[String]>]) {
        let column = |index: usize| rows.iter().map(|row| row.as_ref()[index].clone()).collect();
        let columns: Vec<Column<'_>> =
            heads.iter().enumerate().map(|(index, head)| (*head, column(index))).collect();
        self.series(&columns);
    }

    fn row<'a>(&mut self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) {
        let cells: Vec<String> =
            cells.zip(widths).map(|(cell, width)| format!("{cell:>w$}", w = *width)).collect();
        let _ = writeln!(self.text, "{}", cells.join("  ").trim_end());
    }

    /// Begins the comparison with the paper's numbers; the reasons of those that differ stand below.
    ///
    /// # Panics
    /// A number is not what its mark says.
    pub fn numbers(&mut self, numbers: &[Number<'_>]) {
        numbers.iter().for_each(Number::check);
        let cell = |value: f64, unit: &str| format!("{} {unit}", rounded(value));
        let widest = numbers.iter().map(|n| n.what.chars().count()).max().unwrap_or(0);
        let columns: [Column<'_>; 5] = [
            ("", numbers.iter().map(|n| format!("{:<widest$}", n.what)).collect()),
            ("ours", numbers.iter().map(|n| cell(n.ours, n.unit)).collect()),
            ("paper", numbers.iter().map(|n| cell(n.paper, n.unit)).collect()),
            ("deviation", numbers.iter().map(Number::deviation).collect()),
            ("", numbers.iter().map(|n| n.mark.name().into()).collect()),
        ];
        self.series(&columns);
        for number in numbers {
            if let Mark::Differs(why) = number.mark {
                self.note(&format!("differs: {}: {why}.", number.what.trim()));
            }
        }
    }

    /// What the paper says in words, and whether it holds here.
    pub fn claim(&mut self, claim: &str, holds: bool, evidence: &str) {
        self.verdict(claim, if holds { "holds" } else { "DOES NOT HOLD" }, evidence);
    }

    /// What the paper says in words, and constants of the model already say: nothing could refute it here.
    ///
    /// # Panics
    /// It does not hold after all.
    pub fn given(&mut self, claim: &str, holds: bool, evidence: &str) {
        assert!(holds, "does not hold by construction: {claim}");
        self.verdict(claim, "holds by construction", evidence);
    }

    fn verdict(&mut self, claim: &str, verdict: &str, evidence: &str) {
        let _ = write!(self.text, "\nclaim: ");
        let text = format!("{claim}\n{verdict}: {evidence}");
        for (index, line) in text.lines().enumerate() {
            for (part, line) in wrapped(line, 100).iter().enumerate() {
                let indent = if index == 0 && part == 0 { "" } else { "       " };
                let _ = writeln!(self.text, "{indent}{line}");
            }
        }
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.text
    }
}

/// A number that the paper prints, and ours.
#[derive(Debug)]
pub struct Number<'a> {
    /// The name of the figure.
    pub what: &'a str,
    /// Ours.
    pub ours: f64,
    /// The paper's.
    pub paper: f64,
    /// Of both.
    pub unit: &'a str,
    /// Why it is what it is.
    pub mark: Mark,
}

/// Why a number of ours is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A constant of the model was set so that this number comes out.
    Set,
    /// It follows by arithmetic from numbers of the papers that set the model: a sum of bandwidths, a
    /// length between two that are set. It says little about the engine.
    Interpolated,
    /// It comes out by itself, as the paper's.
    Follows,
    /// It comes out by itself and is another than the paper's, for this reason.
    Differs(&'static str),
}

impl Mark {
    fn name(self) -> &'static str {
        match self {
            Mark::Set => "set",
            Mark::Interpolated => "interpolated",
            Mark::Follows => "follows",
            Mark::Differs(_) => "differs",
        }
    }
}

/// Up to this part of the paper's number another one counts as the same. Chosen, not derived.
const SAME: f64 = 0.10;

impl<'a> Number<'a> {
    /// A number that comes out by itself.
    pub fn new(what: &'a str, ours: f64, paper: f64, unit: &'a str) -> Number<'a> {
        Number { what, ours, paper, unit, mark: Mark::Follows }
    }

    /// A number for which the model was set.
    pub fn set(self) -> Number<'a> {
        Number { mark: Mark::Set, ..self }
    }

    /// A number that follows by arithmetic from those for which the model was set.
    pub fn interpolated(self) -> Number<'a> {
        Number { mark: Mark::Interpolated, ..self }
    }

    /// A number that comes out by itself, but not as the paper's.
    pub fn differs(self, why: &'static str) -> Number<'a> {
        Number { mark: Mark::Differs(why), ..self }
    }

    fn part(&self) -> f64 {
        self.ours / self.paper - 1.0
    }

    fn deviation(&self) -> String {
        format!("{:+.1} %", self.part() * 100.0)
    }

    fn check(&self) {
        let differs = self.part().abs() > SAME;
        assert!(
            differs == matches!(self.mark, Mark::Differs(_)),
            "golden number '{}' is marked {:?}, but deviates by {}",
            self.what,
            self.mark,
            self.deviation()
        );
    }
}

/// Three digits that matter.
pub fn rounded(value: f64) -> String {
    let digits = match value.abs() {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// Microseconds with three digits that matter.
pub fn us(ns: u64) -> String {
    rounded(ns as f64 / 1e3)
}

/// A length as the papers' axes write it.
pub fn size(len: usize) -> String {
    match len {
        _ if len >= 1 << 20 && len.is_multiple_of(1 << 20) => format!("{}M", len >> 20),
        _ if len >= 1 << 10 && len.is_multiple_of(1 << 10) => format!("{}K", len >> 10),
        _ => len.to_string(),
    }
}

/// Lines of at most so many columns, broken between words.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].chars().count() + 1 + word.chars().count() > columns {
            lines.push(word.into());
        } else {
            let line = &mut lines[last];
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
