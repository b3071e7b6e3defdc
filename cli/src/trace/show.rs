//! Traces as text and as a picture.

use nmad_bench::plot::{LaneGroup, PlotError, timeline_svg};
use nmad_bench::stats::number;
use nmad_bench::table::Table;
use std::fmt::Write;

use super::bars::bars;
use super::links::Links;
use super::records::{Record, Records, program_ns};
use super::report::Report;
use super::states::State;

/// One line for each record of all ranks, in order of time.
pub(super) fn text(all: &[Records]) -> String {
    let origin = origin(all);
    let mut records: Vec<(&str, &Record)> =
        all.iter().flat_map(|rank| rank.list.iter().map(|record| (rank.name.as_str(), record))).collect();
    records.sort_by_key(|(_, record)| record.at_ns);
    let mut out = String::new();
    for (name, r) in records {
        // Links open before the program begins: their times are negative.
        let us = r.at_ns.wrapping_sub(origin).cast_signed() as f64 / 1e3;
        let what = r.what.name();
        let _ = write!(out, "{us:>12.3} us  {name}  {:<10} {what:<10} peer {:<3}", r.rail, r.peer);
        if r.number > 0 || r.len > 0 {
            let _ = write!(out, " #{:<6} {:>8} B", r.number, r.len);
        }
        let _ = writeln!(out, "{}{}", if r.text.is_empty() { "" } else { "  " }, r.text);
    }
    out
}

/// What each rank's rails carried when, ranks one above the other.
pub(super) fn picture(all: &[Records]) -> Result<String, PlotError> {
    let (origin, links) = (origin(all), Links::of(all));
    let group = |rank: &Records| LaneGroup {
        label: rank.name.clone(),
        rails: bars(rank, &links).lanes_since(origin, &[]),
    };
    timeline_svg("What each rail carried", &all.iter().map(group).collect::<Vec<_>>())
}

/// When the program of the first rank began.
pub(super) fn origin(all: &[Records]) -> u64 {
    program_ns(all).map_or(0, |(start, _)| start)
}

/// Ranks, rails, and protocols.
pub(super) fn tables(report: &Report) -> [Table; 3] {
    [ranks(report), rails(report), protocols(report)]
}

/// Microseconds.
pub(super) fn us(ns: u64) -> String {
    number(ns as f64 / 1e3)
}

fn ranks(report: &Report) -> Table {
    let imbalance = report.imbalance().map_or_else(
        || "no time in communication".into(),
        |imbalance| format!("imbalance of the time in communication {imbalance:.2}"),
    );
    let title = format!("ranks: times in us; {imbalance}");
    let mut header = vec!["rank", "messages", "bytes", "communication", "share"];
    header.extend(State::ALL.map(State::name));
    let mut table = Table::new(title, &header);
    for rank in &report.ranks {
        let first = [rank.rank.to_string(), rank.sent.to_string(), rank.bytes.to_string()];
        let share = 100.0 * rank.communication_ns() as f64 / rank.total_ns().max(1) as f64;
        let communication = [us(rank.communication_ns()), format!("{share:.1} %")];
        table.row(first.into_iter().chain(communication).chain(rank.by_state.map(us)));
    }
    table
}

fn rails(report: &Report) -> Table {
    let header = ["rank", "rail", "packets", "chunks", "bytes", "busy, us", "share of the time"];
    let mut table = Table::new("rails", &header).words([1]);
    for rail in &report.rails {
        let share = 100.0 * rail.busy_ns as f64 / report.duration_ns.max(1) as f64;
        table.row([
            rail.rank.to_string(),
            rail.rail.clone(),
            rail.packets.to_string(),
            rail.chunks.to_string(),
            rail.bytes.to_string(),
            us(rail.busy_ns),
            format!("{share:.1} %"),
        ]);
    }
    table
}

fn protocols(report: &Report) -> Table {
    let header = ["protocol", "messages", "bytes", "median, us", "prediction", "absolute", "why"];
    let title = "protocols, and the median errors of the predicted times";
    let mut table = Table::new(title, &header).words([6]);
    let percent = |error: f64| format!("{:+.1} %", 100.0 * error);
    for protocol in &report.protocols {
        let (error, absolute) = protocol
            .error
            .map_or_else(Default::default, |(error, absolute)| (percent(error), percent(absolute)));
        table.row([
            protocol.name.clone(),
            protocol.count.to_string(),
            protocol.bytes.to_string(),
            protocol.median_ns.map_or_else(String::new, us),
            error,
            absolute,
            protocol.why.into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_forms_tell_the_same_chunk() {
        let text_of_rank = r#"{"at_ns":1000,"rail":"tcp/r0","what":"PostChunk","peer":1,"number":7,"len":4096}
            {"at_ns":3500,"rail":"tcp/r0","what":"Sent","peer":1,"number":7,"len":0}"#;
        let all = [Records::parse("t.0".into(), text_of_rank).unwrap()];
        let listing = text(&all);
        assert!(listing.contains("PostChunk") && listing.contains("2.500 us"), "{listing}");
        let perfetto = crate::trace::perfetto::events(&all, &[]);
        let bars = perfetto["traceEvents"].as_array().unwrap();
        assert!(bars.iter().any(|event| event["dur"] == 2.5), "{bars:?}");
        assert!(picture(&all).unwrap().contains("tcp/r0"));
    }
}
