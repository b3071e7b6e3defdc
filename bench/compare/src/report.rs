//! The report as data: what `--json` prints, `report.json` has, the page shows and `--diff` reads.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub use crate::contestant::Described;
use crate::facts::Facts;
pub use crate::machine::Machine;
use crate::modes::ModesRow;
use crate::plan::{Cell, Extent};
use crate::{CompareError, OURS};

/// Of the file. Files of version 1 have means and intervals of Student's t in place of medians, and no
/// modes; their times are the same.
pub(crate) const FORMAT: u32 = 2;

/// Cells with a ratio above this count as behind, if their interval is above 1 with 95 %.
pub(crate) const BEHIND: f64 = 1.10;

/// Everything. Ratios are our time to that of the best peer: below 1 is faster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Version of this format.
    pub format: u32,
    /// When it was made (UTC).
    pub made: String,
    /// The command line.
    pub command: String,
    /// The extent of the last run.
    pub extent: Extent,
    /// Where.
    pub machine: Machine,
    /// Rounds of the cell that has most.
    pub rounds: u32,
    /// What a figure is.
    pub method: String,
    /// All contestants.
    pub contestants: Vec<Described>,
    /// What could not be measured at all, and why.
    pub missing: Vec<String>,
    /// Cells that a contestant failed at.
    pub failed: Vec<FailedRow>,
    /// How many figures there are.
    pub figures: usize,
    /// How many of them were taken while others used the machine.
    pub busy_figures: usize,
    /// Over all cells.
    pub overall: Option<Mean>,
    /// By pattern.
    pub patterns: Vec<PatternRow>,
    /// By place.
    pub places: Vec<PatternRow>,
    /// Cells behind by more than 10 %, the worst first: the interval of the ratio is above 1 with 95 %.
    pub behind: Vec<BehindRow>,
    /// Cells whose ratio is above 1.10, too, but whose interval has 1 or is less certain.
    #[serde(default)]
    pub undecided: Vec<BehindRow>,
    /// Cells in which the jobs of a library have two modes.
    #[serde(default)]
    pub modes: Vec<ModesRow>,
    /// All cells.
    pub cells: Vec<CellRow>,
}

/// A cell without a figure of one contestant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailedRow {
    /// The contestant.
    pub who: String,
    /// The cell.
    pub cell: Cell,
    /// Why.
    pub why: String,
}

impl Report {
    /// How many cells MAD-MPI has no figure of: it crashed or hung, or was not tried after that.
    pub fn ours_failed(&self) -> usize {
        self.failed.iter().filter(|row| row.who == OURS).count()
    }
}

/// A geometric mean of ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub ratio: f64,
    /// 95 % interval over the rounds; none if there is but one.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Number of cells.
    pub cells: usize,
    /// Number of cells behind by more than 10 % for certain.
    pub behind: usize,
    /// Number of cells that may be.
    #[serde(default)]
    pub undecided: usize,
}

/// The mean of a pattern or a place, and its worst cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PatternRow {
    /// The pattern or place.
    pub name: String,
    /// Over its cells.
    pub mean: Mean,
    /// The cell with the highest ratio.
    pub worst: BehindRow,
}

/// A cell and how far it is behind.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BehindRow {
    /// Which one.
    pub cell: Cell,
    /// The best peer's name.
    pub best: String,
    /// Median of our time to its time.
    pub ratio: f64,
    /// Interval of the median over the rounds.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// How certain the interval is: 0.95 or more from six rounds on.
    #[serde(default)]
    pub confidence: f64,
    /// Whether others used the machine meanwhile.
    pub busy: bool,
}

/// One cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellRow {
    /// Which one.
    #[serde(flatten)]
    pub cell: Cell,
    /// Figures by contestant, in the order of rounds.
    pub times: BTreeMap<String, Vec<RoundTime>>,
    /// The peer beside which the ratio is largest.
    pub best: Option<String>,
    /// Median over the rounds of our time to its time.
    pub ratio: Option<f64>,
    /// Interval of that median.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// How certain the interval is: 0.95 or more from six rounds on.
    #[serde(default)]
    pub confidence: f64,
    /// Whether figures of a busy machine had to be used.
    pub busy: bool,
    /// Rounds that were left out, since a bare line took much longer in one of the two jobs.
    #[serde(default)]
    pub unlike: usize,
}

/// A figure of one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTime {
    /// From 1.
    pub round: u32,
    /// Microseconds an operation.
    pub us: f64,
    /// Cores that others used just before.
    pub busy: f64,
    /// The circumstances of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
}

impl Report {
    /// Reads `report.json`.
    pub fn read(path: &Path) -> Result<Report, CompareError> {
        let text = fs::read_to_string(path).map_err(CompareError::file("read", path))?;
        let damaged = |what: String| CompareError::Damaged { what, path: path.into() };
        let report: Report = serde_json::from_str(&text).map_err(|error| {
            damaged(format!("it is no report of `nmad bench compare` (report.json): {error}"))
        })?;
        match report.format {
            1..=FORMAT => Ok(report),
            other => Err(damaged(format!("it has format {other}, this program reads up to {FORMAT}"))),
        }
    }
}
