//! A trace as a report in one file that needs no network: tables, and a picture of what each rank did.

use nmad_bench::stats::{bytes, number};
use std::fmt::Write;

use super::messages::Message;
use super::records::Records;
use super::report::{Report, report};
use super::states::{State, threads};

/// Messages that are drawn; of more, the longest.
const LINES: usize = 1_000;
/// Bars of a rank that are drawn, of more, those that last longest.
const BARS: usize = 4_000;
const WIDTH: f64 = 1_160.0;
const LEFT: f64 = 70.0;
const LANE: f64 = 26.0;

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1240px;padding:0 1em;color:#111}\
table{border-collapse:collapse;margin:.6em 0 1.6em}th,td{padding:.25em .7em;border-bottom:1px solid #ccc;\
text-align:right}th{background:#f0f0f0}td.w,th.w{text-align:left}svg{width:100%;height:auto;\
border:1px solid #ccc}i{display:inline-block;width:.9em;height:.9em;margin:0 .35em 0 1em}\
p.cut{color:#a00000}";

pub(super) fn page(all: &[Records], messages: &[Message]) -> String {
    let report = report(all, messages);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>Trace of {} ranks</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<h1>Trace of {} ranks, {} ms</h1>\n",
        all.len(),
        all.len(),
        number(report.duration_ns as f64 / 1e6)
    );
    for rank in all {
        if let Some(cut) = &rank.cut {
            let _ =
                writeln!(out, "<p class=\"cut\">The trace of rank {} is cut short: {cut}.</p>", rank.rank);
        }
        if rank.dropped > 0 {
            let text = format!("Of rank {} the first {} calls are not kept.", rank.rank, rank.dropped);
            let _ = writeln!(out, "<p class=\"cut\">{text}</p>");
        }
    }
    ranks(&mut out, &report);
    picture(&mut out, all, messages);
    rails(&mut out, &report);
    protocols(&mut out, &report);
    out += "</body></html>\n";
    out
}

fn us(ns: u64) -> String {
    number(ns as f64 / 1e3)
}

/// A table: columns whose name begins with a space hold words.
fn table(out: &mut String, title: &str, header: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let class = |name: &str| if name.starts_with(' ') { " class=\"w\"" } else { "" };
    let _ = write!(out, "<h2>{title}</h2>\n<table>\n<tr>");
    for name in header {
        let _ = write!(out, "<th{}>{}</th>", class(name), escaped(name.trim()));
    }
    *out += "</tr>\n";
    for row in rows {
        *out += "<tr>";
        for (name, cell) in header.iter().zip(&row) {
            let _ = write!(out, "<td{}>{}</td>", class(name), escaped(cell));
        }
        *out += "</tr>\n";
    }
    *out += "</table>\n";
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn ranks(out: &mut String, report: &Report) {
    let imbalance = match report.imbalance() {
        Some(imbalance) => format!(
            "Imbalance of the time in communication (longest over mean, without collectives): {imbalance:.2}"
        ),
        None => "No call of MPI was traced.".into(),
    };
    let _ = writeln!(out, "<p>{imbalance}</p>");
    let mut header = vec!["rank", "messages", "bytes", "communication, us", "share"];
    header.extend(State::ALL.map(State::name));
    let row = |rank: &super::report::RankTime| {
        let share = 100.0 * rank.communication_ns() as f64 / rank.total_ns().max(1) as f64;
        let mut row = vec![rank.rank.to_string(), rank.sent.to_string(), bytes(rank.bytes)];
        row.extend([us(rank.communication_ns()), format!("{share:.1} %")]);
        row.extend(rank.by_state.map(us));
        row
    };
    table(out, "Ranks", &header, report.ranks.iter().map(row));
}

fn rails(out: &mut String, report: &Report) {
    let header = ["rank", " rail", "packets", "chunks", "bytes", "busy, us", "share of the time"];
    let row = |rail: &super::report::RailTime| {
        let share = 100.0 * rail.busy_ns as f64 / report.duration_ns.max(1) as f64;
        let counts = [rail.packets.to_string(), rail.chunks.to_string(), bytes(rail.bytes)];
        let mut row = vec![rail.rank.to_string(), rail.rail.clone()];
        row.extend(counts);
        row.extend([us(rail.busy_ns), format!("{share:.1} %")]);
        row
    };
    table(out, "Rails", &header, report.rails.iter().map(row));
}

fn protocols(out: &mut String, report: &Report) {
    let header = [
        " protocol",
        " why",
        "messages",
        "bytes",
        "median time, us",
        "prediction, median error",
        "of the absolute values",
    ];
    let percent = |error: f64| format!("{:+.1} %", 100.0 * error);
    let row = |protocol: &super::report::Protocol| {
        let error = protocol.error.map(|(error, absolute)| [percent(error), percent(absolute)]);
        let mut row = vec![protocol.name.clone(), protocol.why.into(), protocol.count.to_string()];
        row.extend([bytes(protocol.bytes), protocol.median_ns.map_or_else(String::new, us)]);
        row.extend(error.unwrap_or_default());
        row
    };
    table(out, "Protocols", &header, report.protocols.iter().map(row));
}

/// Where ranks and times are in the picture.
struct Scale<'a> {
    all: &'a [Records],
    start: u64,
    end: u64,
}

impl Scale<'_> {
    fn x(&self, at_ns: u64) -> f64 {
        let part = (at_ns.clamp(self.start, self.end) - self.start) as f64 / (self.end - self.start) as f64;
        LEFT + (WIDTH - LEFT) * part
    }

    /// The top of a rank's lane; none: its trace is not here.
    fn y(&self, rank: u32) -> Option<f64> {
        let place = self.all.iter().position(|each| each.rank == rank)?;
        Some(8.0 + place as f64 * LANE * 1.6)
    }
}

fn picture(out: &mut String, all: &[Records], messages: &[Message]) {
    let spans = || all.iter().filter_map(Records::span_ns);
    let (start, end) = (spans().map(|span| span.0).min(), spans().map(|span| span.1).max());
    let (Some(start), Some(end)) = (start, end.filter(|end| Some(*end) > start)) else { return };
    let scale = Scale { all, start, end };
    let height = 40.0 + all.len() as f64 * LANE * 1.6;
    *out += "<h2>What each rank did</h2>\n<p>";
    for state in State::ALL {
        let _ = write!(out, "<i style=\"background:{}\"></i>{}", colour(state), state.name());
    }
    let _ =
        writeln!(out, "</p>\n<svg viewBox=\"0 0 {WIDTH} {height}\" xmlns=\"http://www.w3.org/2000/svg\">");
    all.iter().for_each(|rank| lane(out, &scale, rank));
    lines(out, &scale, messages);
    let (y, span) = (height - 10.0, number((end - start) as f64 / 1e6));
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"{y}\" font-size=\"13\">0</text><text x=\"{WIDTH}\" y=\"{y}\" \
         font-size=\"13\" text-anchor=\"end\">{span} ms</text>\n</svg>"
    );
}

fn lane(out: &mut String, scale: &Scale<'_>, rank: &Records) {
    let Some(top) = scale.y(rank.rank) else { return };
    let (y, name) = (top + LANE * 0.7, rank.rank);
    let _ = writeln!(out, "<text x=\"4\" y=\"{y}\" font-size=\"13\">rank {name}</text>");
    let mut list = threads(rank).into_iter().next().map_or_else(Vec::new, |(_, list)| list);
    list.sort_by_key(|stretch| std::cmp::Reverse(stretch.end_ns.saturating_sub(stretch.start_ns)));
    for stretch in list.iter().take(BARS) {
        let (left, right) = (scale.x(stretch.start_ns), scale.x(stretch.end_ns));
        let what = stretch.call.map_or("computing", |call| &call.call);
        let took = us(stretch.end_ns.saturating_sub(stretch.start_ns));
        let (width, fill) = ((right - left).max(0.2), colour(stretch.state));
        let _ = writeln!(
            out,
            "<rect x=\"{left:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"{LANE}\" fill=\"{fill}\">\
             <title>{what}, {took} us</title></rect>"
        );
    }
}

fn lines(out: &mut String, scale: &Scale<'_>, messages: &[Message]) {
    let mut drawn: Vec<&Message> = messages.iter().filter(|message| message.arrived_ns.is_some()).collect();
    drawn.sort_by_key(|message| std::cmp::Reverse(message.len));
    for message in drawn.iter().take(LINES) {
        let (Some(from), Some(to)) = (scale.y(message.from), scale.y(message.to)) else { continue };
        let (from, to) = (from + LANE / 2.0, to + LANE / 2.0);
        let (left, right) = (scale.x(message.sent_ns), scale.x(message.arrived_ns.unwrap_or(0)));
        let (len, protocol) = (message.len, escaped(&message.protocol));
        let _ = writeln!(
            out,
            "<line x1=\"{left:.2}\" y1=\"{from}\" x2=\"{right:.2}\" y2=\"{to}\" stroke=\"#7a6a00\" \
             stroke-width=\"0.8\"><title>{len} B, {protocol}</title></line>"
        );
    }
}

fn colour(state: State) -> String {
    let [red, green, blue] = state.colour();
    format!("rgb({red},{green},{blue})")
}
