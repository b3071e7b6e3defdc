//! Heat maps as SVG: a row for each pattern and variant, a column for each length; the colour is our time
//! by that of the best peer.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::OURS;
use crate::plan::bytes;
use crate::report::{CellRow, Report};
use nmad_words::escaped;

const WIDTH: usize = 36;
const HEIGHT: usize = 18;
/// Room for the names of rows, and for those of columns.
const LEFT: usize = 190;
const TOP: usize = 62;
/// A factor of four is as dark as it gets.
const DARKEST: f64 = 2.0;

/// Blue for faster, orange for slower: they differ for people who see no red or green, and in grey by the
/// numbers.
const FASTER: [f64; 3] = [33.0, 102.0, 172.0];
const EQUAL: [f64; 3] = [247.0, 247.0, 247.0];
const SLOWER: [f64; 3] = [200.0, 80.0, 0.0];

/// The colour of a ratio.
pub(crate) fn colour(ratio: f64) -> String {
    let part = (ratio.log2() / DARKEST).clamp(-1.0, 1.0);
    let end = if part < 0.0 { FASTER } else { SLOWER };
    let mix = |index: usize| (EQUAL[index] + (end[index] - EQUAL[index]) * part.abs()).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

/// `12.3 us`, `1.20 ms`: three digits.
pub(crate) fn duration(us: f64) -> String {
    let (value, unit) = match us {
        us if us >= 1e6 => (us / 1e6, "s"),
        us if us >= 1e3 => (us / 1e3, "ms"),
        us => (us, "us"),
    };
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$} {unit}")
}

/// ` (0.93..1.07)`, or nothing; the ends of one that says little are cut.
pub(crate) fn interval(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) if high >= 100.0 => format!(" ({low:.2}..>99)"),
        (Some(low), Some(high)) => format!(" ({low:.2}..{high:.2})"),
        _ => String::new(),
    }
}

/// The picture of one place; none if it has no cells.
pub(crate) fn map(report: &Report, place: &str) -> Option<String> {
    let cells: Vec<&CellRow> = report.cells.iter().filter(|row| row.cell.place == place).collect();
    let columns: Vec<u64> =
        cells.iter().map(|row| row.cell.bytes).collect::<BTreeSet<_>>().into_iter().collect();
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for cell in &cells {
        let row = (&*cell.cell.pattern, &*cell.cell.variant);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let (width, height) = (LEFT + columns.len() * WIDTH + 20, TOP + rows.len() * HEIGHT + 4);
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"heat\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"10\" style=\"background:#fff\">",
        escaped(&format!("Ratios at {place}"))
    );
    for (index, size) in columns.iter().enumerate() {
        let (x, y) = (LEFT + index * WIDTH + WIDTH / 2, TOP - 6);
        let _ = write!(svg, "<text transform=\"translate({x} {y}) rotate(-50)\">{}</text>", bytes(*size));
    }
    for (index, (pattern, variant)) in rows.iter().enumerate() {
        let y = TOP + index * HEIGHT;
        let name = if *variant == "-" { pattern.to_string() } else { format!("{pattern} {variant}") };
        let (x, base) = (LEFT - 6, y + HEIGHT - 5);
        let _ = write!(svg, "<text x=\"{x}\" y=\"{base}\" text-anchor=\"end\">{}</text>", escaped(&name));
    }
    for cell in cells {
        let row = rows.iter().position(|row| *row == (&*cell.cell.pattern, &*cell.cell.variant));
        let column = columns.binary_search(&cell.cell.bytes);
        if let (Some(row), Ok(column)) = (row, column) {
            square(&mut svg, cell, LEFT + column * WIDTH, TOP + row * HEIGHT);
        }
    }
    svg.push_str("</svg>");
    Some(svg)
}

fn square(svg: &mut String, row: &CellRow, x: usize, y: usize) {
    let (fill, number) = match row.ratio {
        Some(ratio) => (colour(ratio), short(ratio)),
        None => ("#dddddd".into(), String::new()),
    };
    let class = if row.busy { "busy" } else { "quiet" };
    let (w, h) = (WIDTH - 1, HEIGHT - 1);
    let _ = write!(
        svg,
        "<g class=\"cell {class}\"><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" \
         fill=\"{fill}\"/>",
        escaped(&tip(row))
    );
    let is_dark = row.ratio.is_some_and(|ratio| ratio.log2().abs() > DARKEST * 0.6);
    let ink = if is_dark { "#ffffff" } else { "#222222" };
    let (middle, base) = (x + WIDTH / 2, y + HEIGHT - 5);
    if !number.is_empty() {
        let _ = write!(
            svg,
            "<text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\" fill=\"{ink}\">{number}</text>"
        );
    }
    svg.push_str("</g>");
}

/// At most four characters.
fn short(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 100.0 => format!("{ratio:.0}"),
        ratio if ratio >= 10.0 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// What the pointer shows: everybody's time.
fn tip(row: &CellRow) -> String {
    let mut text = row.cell.to_string();
    if let (Some(ratio), Some(best)) = (row.ratio, &row.best) {
        let _ = write!(text, "\n{} of {best}", short(ratio));
        text.push_str(&interval(row.low, row.high));
    }
    let ours = row.times.iter().filter(|(who, _)| *who == OURS);
    for (who, times) in ours.chain(row.times.iter().filter(|(who, _)| *who != OURS)) {
        let times: Vec<String> = times.iter().map(|time| duration(time.us)).collect();
        let _ = write!(text, "\n{who}: {}", times.join(", "));
    }
    if row.unlike > 0 {
        let _ = write!(text, "\n{} rounds left out: cores in different places", row.unlike);
    }
    if row.busy {
        text.push_str("\nthe machine was busy");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_from_blue_over_white_to_orange() {
        assert_eq!(colour(1.0), "#f7f7f7");
        assert_eq!((colour(0.25), colour(0.01)), ("#2166ac".into(), "#2166ac".into()));
        assert_eq!((colour(4.0), colour(90.0)), ("#c85000".into(), "#c85000".into()));
        assert_ne!(colour(1.1), colour(1.3));
    }

    #[test]
    fn times_have_three_digits() {
        let texts = [0.0712, 1.234, 45.67, 999.0, 1200.0, 2.5e6].map(duration);
        assert_eq!(texts, ["0.071 us", "1.23 us", "45.7 us", "999 us", "1.20 ms", "2.50 s"]);
    }
}
