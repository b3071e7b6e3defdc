//! A trace as a report in one file that needs no network: tables, and a picture of what each rank did.

use nmad_bench::stats::number;
use nmad_words::escaped;
use std::fmt::Write;

use super::messages::Message;
use super::records::{Records, span_ns};
use super::report::report;
use super::show::{tables, us};
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
    let [ranks, rails, protocols] = tables(&report).map(|table| table.html());
    out += &ranks;
    picture(&mut out, all, messages);
    out + &rails + &protocols + "</body></html>\n"
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
    let Some((start, end)) = span_ns(all).filter(|(start, end)| end > start) else { return };
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
