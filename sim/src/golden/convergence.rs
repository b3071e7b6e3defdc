//! The picture of convergence: how much longer messages take than with sampled profiles, by their number.

use super::adapt::{MESSAGES, Run, runs};
use super::table::size;
use std::fmt::Write;

const WIDTH: f64 = 920.0;
const PANEL: f64 = 260.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 110.0;
const HEAD: f64 = 36.0;
const FOOT: f64 = 40.0;
/// Ratios that are drawn; others are drawn at the edge.
const RATIOS: (f64, f64) = (0.9, 2.0);
/// Hues that people with impaired colour vision tell apart (Okabe and Ito).
pub(super) const COLOURS: [&str; 6] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];

/// The picture as SVG, a panel for each set of rails.
pub fn picture() -> String {
    let mut panels: Vec<Vec<&Run>> = Vec::new();
    for run in runs() {
        match panels.last_mut() {
            Some(last) if last[0].rails == run.rails => last.push(run),
            _ => panels.push(vec![run]),
        }
    }
    let height = PANEL * panels.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#ffffff\"/>\n"
    );
    for (place, panel) in panels.iter().enumerate() {
        draw(&mut text, PANEL * place as f64, panel);
    }
    text.push_str("</svg>\n");
    text
}

fn x(number: usize) -> f64 {
    let whole = (MESSAGES as f64).ln();
    LEFT + (WIDTH - LEFT - RIGHT) * (number as f64).ln() / whole
}

fn y(top: f64, ratio: f64) -> f64 {
    let (low, high) = RATIOS;
    let part = (ratio.clamp(low, high) - low) / (high - low);
    top + PANEL - FOOT - (PANEL - HEAD - FOOT) * part
}

fn draw(text: &mut String, top: f64, panel: &[&Run]) {
    let title = format!("{}: half a round trip, relative to sampled profiles", panel[0].rails);
    write(text, (LEFT, top + 20.0), "start", "#000000", &title);
    for ratio in [0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0] {
        let at = y(top, ratio);
        let colour = if ratio == 1.0 { "#000000" } else { "#dddddd" };
        line(text, &[(LEFT, at), (WIDTH - RIGHT, at)], colour, 1.0);
        write(text, (LEFT - 8.0, at + 4.0), "end", "#444444", &format!("{ratio:.1}"));
    }
    for number in [1, 2, 5, 10, 20, 50, 100, MESSAGES] {
        write(text, (x(number), top + PANEL - FOOT + 16.0), "middle", "#444444", &number.to_string());
    }
    let middle = (LEFT + WIDTH - RIGHT) / 2.0;
    write(text, (middle, top + PANEL - 8.0), "middle", "#444444", "messages since the start");
    for (place, (run, colour)) in panel.iter().zip(COLOURS).enumerate() {
        let points: Vec<(f64, f64)> =
            run.ratios.iter().enumerate().map(|(index, &ratio)| (x(index + 1), y(top, ratio))).collect();
        line(text, &points, colour, 1.5);
        let label = format!("{} B", size(run.len));
        write(text, (WIDTH - RIGHT + 10.0, top + HEAD + 12.0 + 18.0 * place as f64), "start", colour, &label);
    }
}

pub(super) fn line(text: &mut String, points: &[(f64, f64)], colour: &str, width: f64) {
    let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let list = list.join(" ");
    let _ = writeln!(
        text,
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" points=\"{list}\"/>"
    );
}

pub(super) fn write(text: &mut String, (x, y): (f64, f64), anchor: &str, colour: &str, words: &str) {
    let _ = writeln!(
        text,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>"
    );
}
