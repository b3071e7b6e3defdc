//! Series of a figure, as columns of its table and as a panel of its picture.

use crate::golden::convergence::{COLOURS, line, write};
use crate::golden::table::{Column, Table, rounded};

/// Series over the same places.
#[derive(Debug, Clone)]
pub struct Chart {
    /// With the unit.
    pub title: String,
    /// Of the places.
    pub head: &'static str,
    /// Names on the lower axis.
    pub places: Vec<String>,
    /// Name and values; zero: there is none.
    pub lines: Vec<(&'static str, Vec<f64>)>,
}

impl Chart {
    /// Columns below the title.
    pub(super) fn enter(&self, table: &mut Table) {
        table.note(&format!("{}:", self.title));
        table.series(&self.columns());
    }

    fn columns(&self) -> Vec<Column<'_>> {
        let cells = |values: &Vec<f64>| values.iter().map(|value| rounded(*value)).collect();
        let lines = self.lines.iter().map(|(name, values)| (*name, cells(values)));
        [(self.head, self.places.clone())].into_iter().chain(lines).collect()
    }

    /// The rows of the table, cells joined by spaces.
    pub(super) fn rows(&self) -> Vec<String> {
        let columns = self.columns();
        let row = |place: usize| columns.iter().map(|(_, cells)| cells[place].as_str()).collect::<Vec<_>>();
        (0..self.places.len()).map(|place| row(place).join(" ")).collect()
    }
}

const WIDTH: f64 = 760.0;
const PANEL: f64 = 240.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 170.0;
const HEAD: f64 = 36.0;
const FOOT: f64 = 34.0;

/// The picture as SVG, a panel for each chart, values on a logarithmic axis.
pub fn picture(charts: &[Chart]) -> String {
    let height = PANEL * charts.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#ffffff\"/>\n"
    );
    for (place, chart) in charts.iter().enumerate() {
        draw(&mut text, PANEL * place as f64, chart);
    }
    text.push_str("</svg>\n");
    text
}

/// The powers of two around all values.
fn bounds(chart: &Chart) -> (f64, f64) {
    let values = || chart.lines.iter().flat_map(|(_, values)| values.iter().copied()).filter(|v| *v > 0.0);
    let low = values().fold(f64::INFINITY, f64::min).log2().floor();
    let high = values().fold(0.0, f64::max).log2().ceil();
    if low < high { (low, high) } else { (low - 1.0, low + 1.0) }
}

fn draw(text: &mut String, top: f64, chart: &Chart) {
    let (low, high) = bounds(chart);
    let x = |place: usize| {
        LEFT + (WIDTH - LEFT - RIGHT) * (place as f64 + 0.5) / chart.places.len().max(1) as f64
    };
    let y = |value: f64| top + PANEL - FOOT - (PANEL - HEAD - FOOT) * (value.log2() - low) / (high - low);
    write(text, (LEFT, top + 20.0), "start", "#000000", &chart.title);
    let step = ((high - low) / 6.0).ceil().max(1.0) as usize;
    for power in (low as i32..=high as i32).step_by(step) {
        let value = f64::from(power).exp2();
        line(text, &[(LEFT, y(value)), (WIDTH - RIGHT, y(value))], "#dddddd", 1.0);
        write(text, (LEFT - 8.0, y(value) + 4.0), "end", "#444444", &rounded(value));
    }
    for (place, name) in chart.places.iter().enumerate() {
        write(text, (x(place), top + PANEL - FOOT + 16.0), "middle", "#444444", name);
    }
    for (place, ((name, values), colour)) in chart.lines.iter().zip(COLOURS).enumerate() {
        let points: Vec<(f64, f64)> = values
            .iter()
            .enumerate()
            .filter(|(_, v)| **v > 0.0)
            .map(|(index, &v)| (x(index), y(v)))
            .collect();
        line(text, &points, colour, 1.5);
        let at = (WIDTH - RIGHT + 10.0, top + HEAD + 12.0 + 18.0 * place as f64);
        write(text, at, "start", colour, name);
    }
}
