//! Regret of the choice: how much longer the chosen algorithm takes than the best one in hindsight.

use super::case::Case;
use super::fabric::Fabric;
use super::rival::RIVALS;
use super::stage::Stage;
use nmad_mpi_base::algorithm::choice::Family;
use nmad_sim::golden::table::{Table, rounded, size};
use std::collections::BTreeMap;

/// Ranks of the table: parts of a host, a host, 2, 8 and 64 of them.
pub const RANKS: [usize; 7] = [2, 8, 32, 64, 128, 512, 4096];
/// Ranks of a table of its own: 256 hosts.
pub const MOST: usize = 16_384;
/// Bytes of a vector or block.
pub const LENS: [u64; 4] = [8, 4 << 10, 256 << 10, 8 << 20];
/// Bytes of the vectors of a table of its own. Blocks of as many bytes are more than [`RECEIVED_MAX`].
pub const LONGEST: u64 = 64 << 20;
/// Cells in which a rank has a longer receive buffer are left out: 64 ranks of a host would need 64 GiB.
pub const RECEIVED_MAX: u64 = 1 << 30;
/// Messages of a job that is run for the table; longer ones take minutes. They are left out, and so are cells
/// whose chosen algorithm is one of them.
pub const MESSAGES_MAX: usize = 4_500_000;
/// Regret that is allowed, as part of the best time.
pub const BOUND: f64 = 0.10;

/// One collective: what each algorithm takes.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The collective.
    pub case: Case,
    /// What MAD-MPI takes.
    pub chosen: &'static str,
    /// Nanoseconds by each algorithm that could be run.
    pub times: BTreeMap<&'static str, f64>,
}

impl Cell {
    /// Runs all algorithms of a case that have up to so many messages.
    pub fn of(case: Case, messages_max: usize) -> Cell {
        let mut times = BTreeMap::new();
        for (name, _) in case.algorithms() {
            if let Some(outcome) = case.run_within(name, messages_max) {
                times.insert(name, outcome.ps as f64 / 1e3);
            }
        }
        Cell { case, chosen: case.chosen(), times }
    }

    /// The best algorithm and its time.
    pub fn best(&self) -> Option<(&'static str, f64)> {
        let times = self.times.iter().map(|(name, ns)| (*name, *ns));
        times.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Extra time of the chosen algorithm, as a fraction of the best time; none if it was not run.
    pub fn regret(&self) -> Option<f64> {
        Some(self.times.get(self.chosen)? / self.best()?.1 - 1.0)
    }

    /// The cells of its row, each with its head.
    pub fn row(&self) -> Vec<(&'static str, String)> {
        let Case { stage, family, len } = self.case;
        let us = |ns: Option<&f64>| ns.map_or("-".into(), |ns| rounded(ns / 1e3));
        let (best, best_ns) = self.best().unwrap_or(("-", 0.0));
        let mut row = vec![
            ("collective", family.name().into()),
            ("ranks", stage.ranks.to_string()),
            ("bytes", if family == Family::Barrier { "-".into() } else { size(len as usize) }),
            ("chosen", self.chosen.to_string()),
            ("us", us(self.times.get(self.chosen))),
            ("best", best.into()),
            ("us", rounded(best_ns / 1e3)),
            ("regret %", self.regret().map_or("-".into(), |regret| format!("{:.1}", 100.0 * regret))),
        ];
        for rival in RIVALS {
            row.push((rival.name, us(rival.choice(&self.case).and_then(|name| self.times.get(name)))));
        }
        row
    }
}

/// The cases of a family on a fabric, with these numbers of ranks and bytes. A barrier has no bytes, and
/// comes with the first of [`LENS`] only.
pub fn cases(
    fabric: &'static Fabric,
    family: Family,
    ranks: &[usize],
    lens: &[u64],
) -> impl Iterator<Item = Case> {
    let has_bytes = family != Family::Barrier;
    let stages = ranks.iter().map(move |&ranks| Stage::block(fabric, ranks));
    let lens = lens.iter().filter(move |len| has_bytes || **len == LENS[0]);
    let all = stages.flat_map(move |stage| lens.clone().map(move |&len| Case { stage, family, len }));
    all.filter(|case| case.received() <= RECEIVED_MAX)
}

/// The table of a fabric, of so many ranks and vectors and blocks of these bytes.
pub fn table(fabric: &'static Fabric, ranks: &[usize], lens: &[u64]) -> String {
    let all = Family::ALL.iter().flat_map(|&family| cases(fabric, family, ranks, lens));
    let cells: Vec<Cell> = all.map(|case| Cell::of(case, MESSAGES_MAX)).collect();
    text(fabric, &cells)
}

/// The table of cells.
pub fn text(fabric: &Fabric, cells: &[Cell]) -> String {
    let mut table = Table::new("Regret of the choice of algorithms of collectives", fabric.title);
    table.note(
        "Hosts of 64 cores, ranks in blocks. us: until the last rank has ended. best: the fastest of all \
         algorithms in hindsight. openmpi, han, mpich, ucc: the algorithm that their published rules name. \
         -: not run, since it has more than 4.5 million messages, or more than a rank may keep.",
    );
    let rows: Vec<_> = cells.iter().map(Cell::row).collect();
    let heads: Vec<&str> =
        rows.first().map(|row| row.iter().map(|cell| cell.0).collect()).unwrap_or_default();
    let texts: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| cell.1.clone()).collect()).collect();
    table.rows(&heads, &texts);
    table.note(&summary(cells));
    table.finish()
}

/// How many cells are within the bound, in words.
pub fn summary(cells: &[Cell]) -> String {
    let mut regrets: Vec<f64> = cells.iter().filter_map(Cell::regret).collect();
    regrets.sort_by(f64::total_cmp);
    let within = regrets.iter().filter(|regret| **regret <= BOUND).count();
    let mut text = format!(
        "regret is at most {:.0} % in {within} of {} cells ({:.1} %), {:.1} % in the worst; {} cells are not \
         judged.",
        100.0 * BOUND,
        regrets.len(),
        100.0 * within as f64 / regrets.len().max(1) as f64,
        100.0 * regrets.last().copied().unwrap_or(0.0),
        cells.len() - regrets.len(),
    );
    for rival in RIVALS {
        let ratio =
            |cell: &Cell| Some(cell.times.get(rival.choice(&cell.case)?)? / cell.times.get(cell.chosen)?);
        let ratios: Vec<f64> = cells.iter().filter_map(ratio).collect();
        let mean = mean_of_ratios(&ratios);
        let behind = ratios.iter().filter(|ratio| **ratio < 1.0 / (1.0 + BOUND)).count();
        text += &format!(
            " {}: {} cells, {} times as long as ours in the geometric mean, more than 10 % faster in \
             {behind}.",
            rival.name,
            ratios.len(),
            rounded(mean),
        );
    }
    text
}

/// The geometric mean, by halving: logarithms differ in their last digits from machine to machine.
fn mean_of_ratios(ratios: &[f64]) -> f64 {
    match ratios {
        [] => 1.0,
        [one] => *one,
        _ => {
            let padded = ratios.len().next_power_of_two();
            let (left, right) = ratios.split_at(ratios.len().min(padded / 2));
            let weight = right.len() as f64 / left.len() as f64;
            let (left, right) = (mean_of_ratios(left), mean_of_ratios(right));
            if weight == 1.0 { (left * right).sqrt() } else { power(left, right, weight / (1.0 + weight)) }
        }
    }
}

/// Between two numbers on a logarithmic scale, at a part of the way, by square roots.
fn power(from: f64, to: f64, part: f64) -> f64 {
    let (mut low, mut high, mut at, mut step) = (from, to, 0.0, 1.0);
    for _ in 0..40 {
        let middle = (low * high).sqrt();
        step /= 2.0;
        if at + step <= part {
            at += step;
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
