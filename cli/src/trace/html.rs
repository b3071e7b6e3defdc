//! A trace as a report in one file that needs no network: tables, and a picture of what each rank did.

use nmad_bench::stats::number;
use nmad_words::escaped;
use std::fmt::Write;

use super::drawing::drawing;
use super::messages::Message;
use super::records::Records;
use super::report::report;
use super::show::tables;
use super::{deaths, files};

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1240px;padding:0 1em;color:#111}\
table{border-collapse:collapse;margin:.6em 0 1.6em}th,td{padding:.25em .7em;border-bottom:1px solid #ccc;\
text-align:right}th{background:#f0f0f0}td.w,th.w{text-align:left}\
i{display:inline-block;width:.9em;height:.9em;margin:0 .35em 0 1em}p.cut{color:#a00000}\
dl{display:grid;grid-template-columns:max-content auto;gap:.1em 1em}dt{color:#555}dd{margin:0}\
#picture{display:grid;grid-template-columns:max-content 1fr;column-gap:.6em;font-size:13px}\
#names div{display:flex;align-items:center;justify-content:flex-end;white-space:nowrap}\
#plot{width:100%;border:1px solid #ccc;cursor:grab}#plot line{stroke:#7a6a00;stroke-width:1;\
vector-effect:non-scaling-stroke}#plot rect:hover{stroke:#000;vector-effect:non-scaling-stroke}\
#axis{display:flex;justify-content:space-between}\
#tip{position:fixed;display:none;background:#111;color:#fff;padding:.2em .5em;font-size:13px;\
pointer-events:none}";

/// Zoom, and texts beside the pointer at once. Without scripts the picture shows all of the time, and a
/// browser shows the titles of bars after a moment.
const SCRIPT: &str = include_str!("html.js");

pub(super) fn page(all: &[Records], messages: &[Message], command: &[String]) -> String {
    let report = report(all, messages);
    let title = format!("Trace of {} ranks, {} ms", all.len(), number(report.duration_ns as f64 / 1e6));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>{title}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n"
    );
    origin(&mut out, all, command);
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
    out += &deaths::table(all).map(|table| table.html()).unwrap_or_default();
    drawing(&mut out, all, messages);
    let script = format!("<script>/*<![CDATA[*/\n{SCRIPT}/*]]>*/</script>\n");
    let files = files::table(all).map(|table| table.html()).unwrap_or_default();
    out + &rails + &protocols + &files + &script + "</body></html>\n"
}

/// Which program it was, started by which command, and when.
fn origin(out: &mut String, all: &[Records], command: &[String]) {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !command.is_empty() {
        rows.push(("command", command.join(" ")));
    }
    let mut programs: Vec<&str> = all.iter().map(|rank| rank.command.as_str()).collect();
    programs.dedup();
    rows.extend(programs.into_iter().filter(|program| !program.is_empty()).map(|p| ("program", p.into())));
    let date = all.iter().map(|rank| rank.date.as_str()).filter(|date| !date.is_empty()).min();
    rows.extend(date.map(|date| ("began", date.into())));
    if rows.is_empty() {
        return;
    }
    *out += "<dl>";
    for (name, text) in rows {
        let _ = write!(out, "<dt>{name}</dt><dd>{}</dd>", escaped(&text));
    }
    *out += "</dl>\n";
}
