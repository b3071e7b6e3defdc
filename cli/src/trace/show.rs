//! Traces as text, as a picture, and for the viewers of others.

use nmad_bench::plot::{LaneGroup, PlotError, timeline_svg};
use serde_json::{Value, json};
use std::fmt::Write;

use super::bars::bars;
use super::records::{Record, Records};

/// One line for each record of all ranks, in order of time.
pub(super) fn text(all: &[Records]) -> String {
    let origin = origin(all);
    let mut records: Vec<(&str, &Record)> =
        all.iter().flat_map(|rank| rank.list.iter().map(|record| (rank.name.as_str(), record))).collect();
    records.sort_by_key(|(_, record)| record.at_ns);
    let mut out = String::new();
    for (name, r) in records {
        let us = r.at_ns.saturating_sub(origin) as f64 / 1e3;
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
    let origin = origin(all);
    let groups = all.iter().enumerate().map(|(number, rank)| {
        // Who got it is known if there are two.
        let other = if all.len() == 2 { all.get(1 - number) } else { None };
        LaneGroup { label: rank.name.clone(), rails: bars(rank, other).lanes_since(origin, &[]) }
    });
    timeline_svg("What each rail carried", &groups.collect::<Vec<_>>())
}

/// The trace-event format: each order is a bar, everything else a mark; a rank is a process, a rail a thread.
pub(super) fn chrome(all: &[Records]) -> Value {
    let mut events = Vec::new();
    for (process, rank) in all.iter().enumerate() {
        let rails = bars(rank, None);
        for (thread, lane) in rails.lanes_since(0, &[]).iter().enumerate() {
            events.push(named("thread_name", process, thread, &lane.label));
            events.extend(lane.spans.iter().map(|span| {
                json!({
                    "ph": "X", "name": format!("{} B", span.len), "pid": process, "tid": thread,
                    "ts": span.start_us, "dur": span.end_us - span.start_us,
                })
            }));
        }
        events.push(named("process_name", process, 0, &rank.name));
        events.extend(rank.list.iter().map(|record| mark(process, &rails.rails, record)));
    }
    json!({ "traceEvents": events })
}

fn mark(process: usize, rails: &[String], r: &Record) -> Value {
    let thread = rails.iter().position(|rail| *rail == r.rail).unwrap_or(0);
    json!({
        "ph": "i", "s": "t", "name": format!("{} #{}", r.what.name(), r.number),
        "pid": process, "tid": thread,
        "ts": r.at_ns as f64 / 1e3, "args": { "peer": r.peer, "len": r.len, "text": r.text },
    })
}

fn named(what: &str, process: usize, thread: usize, name: &str) -> Value {
    json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": { "name": name } })
}

fn origin(all: &[Records]) -> u64 {
    all.iter().filter_map(|rank| rank.list.first()).map(|record| record.at_ns).min().unwrap_or(0)
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
        let chrome = chrome(&all);
        assert_eq!(chrome["traceEvents"][1]["dur"], 2.5);
        assert!(picture(&all).unwrap().contains("tcp/r0"));
    }
}
