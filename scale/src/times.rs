//! Time against ranks, ours beside other libraries' rules and the bound, as a table and as a picture.

use super::case::Case;
use super::fabric::{ACROSS_NS, CACHE_CORES, COPY_MB, Fabric, NEAR_NS};
use super::regret::{MESSAGES_MAX, RECEIVED_MAX};
use super::rival::RIVALS;
use super::stage::Stage;
use nmad_mpi_base::algorithm::choice::Family;
use nmad_mpi_base::algorithm::cost::log2_ceil;
use nmad_sim::golden::p5::chart::{Chart, picture};
use nmad_sim::golden::table::{Table, rounded, size};
use std::collections::BTreeMap;

/// Numbers of ranks.
pub const RANKS: [usize; 7] = [2, 16, 64, 256, 1024, 4096, 16_384];
/// Ranks of a table of its own. Lines of pictures end before.
pub const MANY: usize = 100_000;

/// The times of one collective at one number of ranks, in microseconds.
#[derive(Debug, Clone)]
pub struct Row {
    /// The collective.
    pub case: Case,
    /// What MAD-MPI takes.
    pub chosen: &'static str,
    /// Ours, the rivals', the bound; none: not run.
    pub us: Vec<Option<f64>>,
}

/// Heads of the times.
pub fn heads() -> impl Iterator<Item = &'static str> {
    ["MAD-MPI"].into_iter().chain(RIVALS.map(|rival| rival.name)).chain(["bound"])
}

impl Row {
    /// Runs a case by the algorithm that is chosen, and by those that the rivals would take.
    pub fn of(case: Case) -> Row {
        let (chosen, fitting) = (case.chosen(), case.algorithms());
        let mut known: BTreeMap<&str, Option<f64>> = BTreeMap::new();
        let mut us_by = |name| {
            let has = fitting.iter().any(|(fits, _)| *fits == name);
            let run = || has.then(|| case.run_within(name, MESSAGES_MAX)).flatten();
            *known.entry(name).or_insert_with(|| run().map(|outcome| outcome.ps as f64 / 1e6))
        };
        let names = [Some(chosen)].into_iter().chain(RIVALS.map(|rival| rival.choice(&case)));
        let mut us: Vec<Option<f64>> = names.map(|name| us_by(name?)).collect();
        us.push(Some(bound_us(&case)));
        Row { case, chosen, us }
    }

    /// Its cells.
    pub fn cells(&self) -> Vec<String> {
        let us = self.us.iter().map(|us| us.map_or("-".into(), rounded));
        let head = [self.case.family.name().into(), self.case.stage.ranks.to_string(), self.chosen.into()];
        head.into_iter().chain(us).collect()
    }
}

/// A latency for each doubling of ranks, and the bytes that must pass the busiest place once: a card where
/// there are several hosts, else a core.
pub fn bound_us(case: &Case) -> f64 {
    let Case { stage, family, len } = *case;
    let (cost, hosts) = (stage.fabric.cost(), stage.hosts());
    let crowd = stage.ranks.min(stage.cores);
    let doublings = |of: usize| f64::from(log2_ceil(of));
    let within = doublings(crowd.min(CACHE_CORES));
    let across = doublings(crowd) - within;
    let near = within * NEAR_NS as f64 + across * ACROSS_NS as f64;
    let latency = near + doublings(hosts) * cost.far.ns(0);
    let mb: u64 = match hosts {
        1 => COPY_MB,
        _ => stage.fabric.rails.iter().map(|rail| rail.card.bandwidth / 1_000_000).sum(),
    };
    // Ranks whose blocks must come from outside the busiest place.
    let elsewhere = if hosts == 1 { stage.ranks - 1 } else { stage.ranks - crowd } as u64;
    let bytes = match family {
        Family::Barrier => 0,
        Family::Bcast | Family::Reduce | Family::Allreduce | Family::Scan => len,
        Family::Gather | Family::Scatter | Family::Allgather | Family::ReduceScatter => elsewhere * len,
        Family::Alltoall => elsewhere * len * if hosts == 1 { 1 } else { crowd as u64 },
    };
    (latency + bytes as f64 * 1e3 / mb as f64) / 1e3
}

/// The cases of a family, with these numbers of ranks.
pub fn cases(
    fabric: &'static Fabric,
    family: Family,
    len: u64,
    ranks: &[usize],
) -> impl Iterator<Item = Case> {
    let all = ranks.iter().map(move |&ranks| Case { stage: Stage::block(fabric, ranks), family, len });
    all.filter(|case| case.received() <= RECEIVED_MAX)
}

/// The table of rows.
pub fn text(fabric: &Fabric, len: u64, rows: &[Row]) -> String {
    let title = format!("Time of collectives against ranks, {} B", size(len as usize));
    let mut table = Table::new(&title, fabric.title);
    table.note(
        "Hosts of 64 cores, ranks in blocks; microseconds until the last rank has ended. openmpi, han, \
         mpich, ucc: the algorithm that their published rules name. bound: a latency for each doubling of \
         ranks, and the bytes that one card must carry, or one core copy, at its bandwidth. -: not run.",
    );
    if rows.iter().any(|row| row.case.stage.ranks >= MANY) {
        table.note("Every rank is run; none stands for others.");
    }
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    let heads: Vec<&str> = ["collective", "ranks", "chosen"].into_iter().chain(heads()).collect();
    table.rows(&heads, &cells);
    table.finish()
}

/// The picture of a table of times: a panel for each collective, with the numbers that the text prints.
pub fn drawn(text: &str) -> String {
    let title = text.lines().next().unwrap_or_default();
    let mut charts: Vec<Chart> = Vec::new();
    for cells in text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let known = Family::ALL.iter().find(|family| cells.first() == Some(&family.name()));
        let (Some(family), Some(ranks), true) = (known, cells.get(1), cells.len() == 3 + heads().count())
        else {
            continue;
        };
        let title = format!("{}, us ({title})", family.name());
        if charts.last().is_none_or(|chart| chart.title != title) {
            let lines = heads().map(|head| (head, Vec::new())).collect();
            charts.push(Chart { title, head: "ranks", places: Vec::new(), lines });
        }
        let chart = charts.last_mut().expect("one was pushed");
        chart.places.push((*ranks).into());
        for (line, cell) in chart.lines.iter_mut().zip(&cells[3..]) {
            line.1.push(cell.parse().unwrap_or(0.0));
        }
    }
    picture(&charts)
}
