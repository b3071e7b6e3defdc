//! Predicted phases as tables, as JSON and as a picture.

use nmad_bench::phase::outcome::{RankPhase, Stretch};
use nmad_bench::plot::{LaneGroup, RailLane, Span, timeline_svg};
use nmad_bench::stats::{bytes, number};
use nmad_bench::table::Table;
use serde::Serialize;

use super::Predicted;

/// Ranks that a table lists; of more, those that communicate longest.
const LISTED: usize = 16;

/// One line of `--json`.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    setting: &'a str,
    duration_us: f64,
    imbalance: f64,
    ranks: Vec<RankLine>,
}

#[derive(Serialize)]
struct RankLine {
    rank: usize,
    communication_us: f64,
    calculation_us: f64,
    end_us: f64,
    messages: u64,
    bytes: u64,
    asked: u64,
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

pub(super) fn line(one: &Predicted) -> Line<'_> {
    let rank = |(rank, phase): (usize, &RankPhase)| RankLine {
        rank,
        communication_us: us(phase.communication_ns),
        calculation_us: us(phase.calculation_ns),
        end_us: us(phase.end_ns),
        messages: phase.messages,
        bytes: phase.bytes,
        asked: phase.asked,
    };
    Line {
        setting: &one.name,
        duration_us: us(one.phase.duration_ns()),
        imbalance: one.phase.imbalance(),
        ranks: one.phase.ranks.iter().enumerate().map(rank).collect(),
    }
}

/// The ranks as it is, and all settings beside each other.
pub(super) fn tables(all: &[Predicted]) -> Vec<Table> {
    let mut tables: Vec<Table> = all.first().map(ranks).into_iter().collect();
    let header = ["setting", "duration, us", "longest communication", "imbalance", "messages that asked"];
    let mut table = Table::new("the phase", &header);
    for one in all {
        let ranks = &one.phase.ranks;
        let longest = ranks.iter().map(|rank| rank.communication_ns).max().unwrap_or(0);
        let asked: u64 = ranks.iter().map(|rank| rank.asked).sum();
        let messages: u64 = ranks.iter().map(|rank| rank.messages).sum();
        table.row([
            one.name.clone(),
            number(us(one.phase.duration_ns())),
            number(us(longest)),
            number(one.phase.imbalance()),
            format!("{asked} of {messages}"),
        ]);
    }
    tables.push(table);
    tables
}

fn ranks(one: &Predicted) -> Table {
    let mut ranks: Vec<(usize, &RankPhase)> = one.phase.ranks.iter().enumerate().collect();
    let title = if ranks.len() > LISTED {
        ranks.sort_by_key(|(rank, phase)| (std::cmp::Reverse(phase.communication_ns), *rank));
        ranks.truncate(LISTED);
        format!(
            "predicted times, us: the {LISTED} of {} ranks that communicate longest",
            one.phase.ranks.len()
        )
    } else {
        "predicted times, us".into()
    };
    let header = ["rank", "communication", "calculation", "end", "messages", "bytes", "asked"];
    let mut table = Table::new(title, &header);
    for (rank, phase) in ranks {
        let times = [phase.communication_ns, phase.calculation_ns, phase.end_ns].map(|ns| number(us(ns)));
        let counts = [phase.messages.to_string(), bytes(phase.bytes), phase.asked.to_string()];
        table.row([rank.to_string()].into_iter().chain(times).chain(counts));
    }
    table
}

/// What the ranks do when, setting by setting.
pub(super) fn picture(all: &[Predicted]) -> Result<String, String> {
    let span = |stretch: &Stretch, bytes: u64| Span {
        start_us: us(stretch.start_ns),
        end_us: us(stretch.end_ns),
        len: if stretch.is_calculation { 0 } else { bytes },
        label: if stretch.is_calculation { "calculation" } else { "communication" }.into(),
    };
    let rank = |(rank, phase): (usize, &RankPhase)| RailLane {
        label: format!("rank {rank}"),
        spans: phase.stretches.iter().map(|stretch| span(stretch, phase.bytes)).collect(),
    };
    let group = |one: &Predicted| LaneGroup {
        label: one.name.clone(),
        rails: one.phase.ranks.iter().enumerate().map(rank).collect(),
    };
    let groups: Vec<LaneGroup> = all.iter().map(group).collect();
    timeline_svg("communication phase, predicted", &groups).map_err(|error| error.to_string())
}
