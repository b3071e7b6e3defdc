//! The report as one file of HTML, without scripts and without anything from elsewhere.

use std::fmt::Write;

use crate::OURS;
use crate::facts::Difference;
use crate::heat::{colour, duration, interval, map};
use crate::modes::{Jobs, ModesRow};
use crate::place::Place;
use crate::report::{BehindRow, Mean, PatternRow, Report};
use crate::statistics::CERTAIN;
use nmad_words::escaped;

const STYLE: &str = "
body { font: 15px/1.45 system-ui, sans-serif; color: #222; background: #fff; max-width: 1200px;
  margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; margin-bottom: 0.2em; } h2 { margin-top: 2em; } h3 { margin: 1.6em 0 0.4em; }
.sub { color: #555; } .verdict { font-size: 1.25em; margin: 1em 0; }
table { border-collapse: collapse; } th, td { padding: 0.15em 0.9em 0.15em 0; text-align: left; }
th { border-bottom: 1px solid #999; font-weight: 600; } td.n, th.n { text-align: right;
  font-variant-numeric: tabular-nums; }
td.r { padding: 0.15em 0.6em; text-align: right; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; } svg.heat text { font: 10px system-ui, sans-serif; fill: #222; }
svg.heat g.cell text[fill='#ffffff'] { fill: #fff; } g.busy rect { stroke: #777; stroke-dasharray: 2 2; }
.scale span { display: inline-block; width: 3.2em; text-align: center; padding: 0.1em 0; }
.warn { border-left: 4px solid #c85000; padding-left: 0.8em; } code { font-size: 0.95em; }
";

/// The page.
pub(crate) fn html(report: &Report) -> String {
    let mut page = String::new();
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>MAD-MPI beside other MPIs</title>\n<style>{STYLE}</style>\n\
         </head><body>\n"
    );
    head(&mut page, report);
    warnings(&mut page, report);
    means(&mut page, "By pattern", "pattern", &report.patterns, |name| name.to_string());
    means(&mut page, "By place", "place", &report.places, |name| Place::title_of(name).to_string());
    maps(&mut page, report);
    behind(&mut page, "Behind by more than 10 %", &report.behind, report);
    behind(&mut page, "Perhaps behind by more than 10 %", &report.undecided, report);
    modes(&mut page, &report.modes);
    failures(&mut page, report);
    contestants(&mut page, report);
    page.push_str("</body></html>\n");
    page
}

fn head(page: &mut String, report: &Report) {
    let machine = &report.machine;
    let _ = write!(
        page,
        "<h1>MAD-MPI beside other MPIs</h1>\n<p class=\"sub\">{}, {} cores, Linux {}, {} &middot; {} \
         &middot; \
         <code>{}</code></p>\n",
        escaped(&machine.processor),
        machine.cores,
        escaped(&machine.kernel),
        escaped(&machine.host),
        escaped(&report.made),
        escaped(&report.command)
    );
    let verdict = match &report.overall {
        Some(mean) => format!(
            "<b>{:.2}</b>{} of the best peer's time, geometric mean of {} cells; {} of them are behind by \
             more than 10 %, {} may be.",
            mean.ratio,
            interval(mean.low, mean.high),
            mean.cells,
            mean.behind,
            mean.undecided
        ),
        None => "No verdict: there is no cell that both MAD-MPI and a peer have measured.".into(),
    };
    let _ = write!(page, "<p class=\"verdict\">{verdict}</p>\n<p>{}", escaped(&report.method));
    let _ = writeln!(page, " {}.</p>", rounds(report));
}

fn warnings(page: &mut String, report: &Report) {
    let mut warnings: Vec<String> = report.missing.iter().map(|text| format!("Missing: {text}")).collect();
    if report.busy_figures > 0 {
        warnings.push(format!(
            "{} of {} figures were taken while others used the machine; cells that rest on them have a \
             dashed border.",
            report.busy_figures, report.figures
        ));
    }
    if !report.failed.is_empty() {
        warnings.push(format!("{} cells have no figure of some contestant; see below.", report.failed.len()));
    }
    for warning in warnings {
        let _ = writeln!(page, "<p class=\"warn\">{}</p>", escaped(&warning));
    }
}

fn means(page: &mut String, title: &str, column: &str, rows: &[PatternRow], name: impl Fn(&str) -> String) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<h2>{title}</h2>\n<table><tr><th>{column}</th><th class=\"n\">mean</th><th>95 %</th>\
         <th class=\"n\">cells</th><th class=\"n\">behind</th><th class=\"n\">maybe</th><th>worst cell</th>\
         <th class=\"n\">ratio</th>\
         <th>best peer there</th></tr>\n"
    );
    for row in rows {
        let Mean { ratio, low, high, cells, behind, undecided } = row.mean;
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=\"r\" style=\"background:{}\">{ratio:.2}</td><td>{}</td>\
             <td class=\"n\">{cells}</td><td class=\"n\">{behind}</td>\
             <td class=\"n\">{undecided}</td>\
             <td>{}</td><td class=\"n\">{:.2}</td><td>{}</td></tr>",
            escaped(&name(&row.name)),
            tint(ratio),
            interval(low, high),
            escaped(&row.worst.cell.to_string()),
            row.worst.ratio,
            escaped(&row.worst.best)
        );
    }
    page.push_str("</table>\n");
}

/// Half as strong as in the pictures, so that black text stays readable.
fn tint(ratio: f64) -> String {
    colour(ratio.sqrt())
}

fn maps(page: &mut String, report: &Report) {
    page.push_str(
        "<h2>All cells</h2>\n<p>Our time by that of the best peer; the pointer shows all times.</p>\n",
    );
    page.push_str("<p class=\"scale\">faster ");
    for ratio in [0.25, 0.5, 0.71, 0.91, 1.0, 1.1, 1.41, 2.0, 4.0] {
        let ink = if f64::log2(ratio).abs() > 1.2 { "#fff" } else { "#222" };
        let fill = colour(ratio);
        let _ = write!(page, "<span style=\"background:{fill};color:{ink}\">{ratio}</span>");
    }
    page.push_str(" slower</p>\n");
    let mut places: Vec<&str> = Vec::new();
    for row in &report.cells {
        if !places.contains(&&*row.cell.place) {
            places.push(&row.cell.place);
        }
    }
    for place in places {
        let title = escaped(Place::title_of(place));
        if let Some(svg) = map(report, place) {
            let _ = writeln!(page, "<h3>{title}</h3>\n<div class=\"scroll\">{svg}</div>");
        }
    }
}

fn behind(page: &mut String, title: &str, rows: &[BehindRow], report: &Report) {
    let _ = writeln!(page, "<h2>{title}: {} cells</h2>", rows.len());
    if rows.is_empty() {
        return;
    }
    page.push_str(
        "<table><tr><th>cell</th><th class=\"n\">ratio</th><th>interval</th><th class=\"n\">ours</th>\
         <th class=\"n\">theirs</th><th>best peer</th><th></th></tr>\n",
    );
    for row in rows {
        let (ours, theirs) = times(report, row);
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td class=\"r\" style=\"background:{}\">{:.2}</td><td>{}</td>\
             <td class=\"n\">{ours}</td><td class=\"n\">{theirs}</td><td>{}</td><td>{}</td></tr>",
            escaped(&row.cell.to_string()),
            tint(row.ratio),
            row.ratio,
            interval(row.low, row.high),
            escaped(&row.best),
            remark(row)
        );
    }
    page.push_str("</table>\n");
}

/// The cells with two modes, and what differed.
fn modes(page: &mut String, rows: &[ModesRow]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<h2>Jobs with two modes: {} cells</h2>\n<table><tr><th>cell</th><th>who</th><th>jobs</th>\
         <th>what differed</th></tr>\n",
        rows.len()
    );
    for row in rows {
        let differ: Vec<(&str, String)> = differences(row).collect();
        for (who, jobs) in &row.libraries {
            let what = differ.iter().find(|(of, _)| of == who).map_or("", |(_, what)| what);
            let cells = [&row.cell.to_string(), who, &mode_words(jobs), what].map(escaped);
            let _ = writeln!(page, "<tr><td>{}</td></tr>", cells.join("</td><td>"));
        }
    }
    page.push_str("</table>\n");
}

/// The jobs of a library in a cell: one time, or two with the share of jobs of each.
pub(crate) fn mode_words(jobs: &Jobs) -> String {
    match &jobs.split {
        None => format!("{} in {} jobs", duration(jobs.us), jobs.jobs),
        Some(split) => {
            let (fast, slow) = (duration(split.fast_us), duration(split.slow_us));
            format!("{fast} in {} and {slow} in {} of {} jobs", jobs.jobs - split.slow, split.slow, jobs.jobs)
        }
    }
}

/// The differences between the fast and the slow jobs of each library that has two modes.
pub(crate) fn differences(row: &ModesRow) -> impl Iterator<Item = (&str, String)> {
    row.libraries.iter().filter_map(|(who, jobs)| {
        let differ = &jobs.split.as_ref()?.differ;
        let words = |one: &Difference| format!("{} {} fast, {} slow", one.fact, one.fast, one.slow);
        let words: Vec<String> = differ.iter().map(words).collect();
        let text = if words.is_empty() { "nothing that was noted differs".into() } else { words.join("; ") };
        Some((&**who, text))
    })
}

/// What makes the ratio of a cell doubtful.
pub(crate) fn remark(row: &BehindRow) -> String {
    match (row.busy, row.low) {
        (true, _) => "busy machine".into(),
        (false, None) => "one round".into(),
        (false, Some(_)) if row.confidence < CERTAIN => {
            format!("interval of {:.0} %", 100.0 * row.confidence)
        }
        _ => String::new(),
    }
}

/// How many rounds there were.
pub(crate) fn rounds(report: &Report) -> String {
    format!("{} round{}", report.rounds, if report.rounds == 1 { "" } else { "s" })
}

/// The medians of both in a cell.
pub(crate) fn times(report: &Report, row: &BehindRow) -> (String, String) {
    let cell = report.cells.iter().find(|cell| cell.cell == row.cell);
    let of = |who: &str| {
        let times = cell.and_then(|cell| cell.times.get(who));
        let times: Vec<f64> = times.into_iter().flatten().map(|time| time.us).collect();
        crate::statistics::median(&times).map_or_else(String::new, duration)
    };
    (of(OURS), of(&row.best))
}

fn failures(page: &mut String, report: &Report) {
    if report.failed.is_empty() {
        return;
    }
    page.push_str("<h2>Without a figure</h2>\n<table><tr><th>who</th><th>cell</th><th>why</th></tr>\n");
    for row in &report.failed {
        let (who, cell, why) = (escaped(&row.who), escaped(&row.cell.to_string()), escaped(&row.why));
        let _ = writeln!(page, "<tr><td>{who}</td><td>{cell}</td><td>{why}</td></tr>");
    }
    page.push_str("</table>\n");
}

fn contestants(page: &mut String, report: &Report) {
    page.push_str("<h2>Contestants</h2>\n<table><tr><th>name</th><th>version</th></tr>\n");
    for one in &report.contestants {
        let _ = writeln!(page, "<tr><td>{}</td><td>{}</td></tr>", escaped(&one.name), escaped(&one.identity));
    }
    page.push_str("</table>\n");
}

#[cfg(test)]
mod tests;
