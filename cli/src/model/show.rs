//! Predicted phases as tables, as JSON and as a picture.

use nmad_bench::phase::outcome::{RankPhase, Stretch};
use nmad_bench::plot::{LaneGroup, RailLane, Span, timeline_svg};
use nmad_bench::stats::{bytes, imbalance, number, percentile};
use nmad_bench::table::Table;
use serde::Serialize;

use super::{Measured, Predicted};

/// Ranks that a table lists; of more, those that communicate longest.
const LISTED: usize = 16;

/// One line of `--json`.
#[derive(Serialize)]
pub(super) struct Line<'a> {
    setting: &'a str,
    duration_us: f64,
    imbalance: f64,
    /// The run that the pattern was taken from, if it was a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    traced: Option<TracedLine>,
    ranks: Vec<RankLine>,
}

#[derive(Serialize)]
struct TracedLine {
    duration_us: f64,
    duration_error_percent: f64,
    communication_error_percent: f64,
    imbalance: f64,
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

pub(super) fn line<'a>(one: &'a Predicted, measured: &[Measured]) -> Line<'a> {
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
        traced: traced(one, measured),
        ranks: one.phase.ranks.iter().enumerate().map(rank).collect(),
    }
}

/// The ranks as it is, and all settings beside each other.
pub(super) fn tables(all: &[Predicted], measured: &[Measured]) -> Vec<Table> {
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
    tables.extend(all.first().and_then(|one| against(one, measured)));
    tables
}

/// Predicted less measured, in percent of what was measured.
fn error_percent(predicted_ns: u64, measured_ns: u64) -> f64 {
    100.0 * (predicted_ns as f64 - measured_ns as f64) / measured_ns.max(1) as f64
}

/// A prediction against the run that its pattern comes from; none: that was no trace.
fn traced(one: &Predicted, measured: &[Measured]) -> Option<TracedLine> {
    let duration_ns = measured.iter().map(|rank| rank.end_ns).max()?;
    let errors = one.phase.ranks.iter().zip(measured);
    let errors: Vec<f64> = errors
        .map(|(rank, measured)| error_percent(rank.communication_ns, measured.communication_ns).abs())
        .collect();
    Some(TracedLine {
        duration_us: us(duration_ns),
        duration_error_percent: error_percent(one.phase.duration_ns(), duration_ns),
        communication_error_percent: percentile(&errors, 50)?,
        imbalance: imbalance(measured.iter().map(|rank| rank.communication_ns)).unwrap_or(1.0),
    })
}

fn against(one: &Predicted, measured: &[Measured]) -> Option<Table> {
    let traced = traced(one, measured)?;
    let title = format!(
        "against the trace, us: duration {}, predicted with an error of {:+.1} %; imbalance {}; time in MPI \
         with a median error of {:.1} %",
        number(traced.duration_us),
        traced.duration_error_percent,
        number(traced.imbalance),
        traced.communication_error_percent
    );
    let header = ["rank", "in MPI, traced", "predicted", "error", "end, traced", "predicted", "error"];
    let mut table = Table::new(title, &header);
    for (place, (rank, measured)) in one.phase.ranks.iter().zip(measured).enumerate().take(LISTED) {
        let pair = |predicted_ns: u64, measured_ns: u64| {
            let error = format!("{:+.1} %", error_percent(predicted_ns, measured_ns));
            [number(us(measured_ns)), number(us(predicted_ns)), error]
        };
        let communication = pair(rank.communication_ns, measured.communication_ns);
        let end = pair(rank.end_ns, measured.end_ns);
        table.row([place.to_string()].into_iter().chain(communication).chain(end));
    }
    Some(table)
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
    let span = |stretch: &Stretch| Span {
        start_us: us(stretch.start_ns),
        end_us: us(stretch.end_ns),
        len: None,
        label: if stretch.is_calculation { "calculation" } else { "communication" }.into(),
    };
    let rank = |(rank, phase): (usize, &RankPhase)| RailLane {
        label: format!("rank {rank}"),
        spans: phase.stretches.iter().map(span).collect(),
    };
    let group = |one: &Predicted| LaneGroup {
        label: one.name.clone(),
        rails: one.phase.ranks.iter().enumerate().map(rank).collect(),
    };
    let groups: Vec<LaneGroup> = all.iter().map(group).collect();
    timeline_svg("communication phase, predicted", &groups).map_err(|error| error.to_string())
}
