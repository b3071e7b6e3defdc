//! Heat maps: a figure for each pair of a row and a column, as a colour and as a number.
use super::canvas::{Align, Canvas, Lettering, PlotError, text_width};
use super::colour;
use plotters::style::RGBColor;

const TOP: i32 = 54;
const CELL: (i32, i32) = (76, 34);
const GAP: i32 = 52;
const TEXT_SIZE: i32 = 13;

/// One map. A figure that is missing or not finite leaves its cell empty.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// What the map shows.
    pub title: String,
    /// What the columns are.
    pub columns: Vec<String>,
    /// What the rows are, and their figures.
    pub rows: Vec<(String, Vec<f64>)>,
}

/// Draws maps one below the other. Figures of `good` and below are white, those of `bad` and above dark.
pub fn heat_svg(title: &str, maps: &[HeatMap], (good, bad): (f64, f64)) -> Result<String, PlotError> {
    let names = || maps.iter().flat_map(|map| &map.rows).map(|(name, _)| text_width(name, TEXT_SIZE));
    let left = names().max().unwrap_or(0).max(60) + 30;
    let columns = maps.iter().map(|map| map.columns.len()).max().unwrap_or(0) as i32;
    let titles = maps.iter().map(|map| text_width(&map.title, TEXT_SIZE)).max().unwrap_or(0);
    let width = (left + columns * CELL.0).max(titles + left).max(text_width(title, 17)) + 30;
    let heights: Vec<i32> = maps.iter().map(|map| map.rows.len() as i32 * CELL.1 + GAP).collect();
    let height = TOP + heights.iter().sum::<i32>().max(60) + 10;
    Canvas::picture((width as u32, height as u32), |canvas| {
        canvas.text((16, 26), Lettering::bold(17, colour::INK, Align::Left), title)?;
        if maps.iter().all(|map| map.rows.is_empty()) {
            let faint = Lettering::plain(15, colour::FAINT_INK, Align::Centre);
            return canvas.text((width / 2, TOP + 30), faint, "no data");
        }
        let mut top = TOP;
        for (map, height) in maps.iter().zip(&heights) {
            draw(canvas, map, (left, top), (good, bad))?;
            top += height;
        }
        Ok(())
    })
}

fn draw(
    canvas: &Canvas<'_>,
    map: &HeatMap,
    (left, top): (i32, i32),
    (good, bad): (f64, f64),
) -> Result<(), PlotError> {
    let plain = |align| Lettering::plain(TEXT_SIZE, colour::INK, align);
    canvas.text((16, top), Lettering::bold(TEXT_SIZE, colour::INK, Align::Left), &map.title)?;
    let middle = |column: usize| left + column as i32 * CELL.0 + CELL.0 / 2;
    for (column, name) in map.columns.iter().enumerate() {
        canvas.text((middle(column), top + 18), plain(Align::Centre), name)?;
    }
    for (row, (name, figures)) in map.rows.iter().enumerate() {
        let upper = top + 30 + row as i32 * CELL.1;
        canvas.text((left - 10, upper + CELL.1 / 2), plain(Align::Right), name)?;
        let cells = figures.iter().enumerate().take(map.columns.len());
        for (column, &figure) in cells.filter(|(_, figure)| figure.is_finite()) {
            let corner = (left + column as i32 * CELL.0, upper);
            let ground = shade((figure - good) / (bad - good).max(f64::MIN_POSITIVE));
            canvas.rect(corner, (corner.0 + CELL.0 - 2, corner.1 + CELL.1 - 2), ground)?;
            canvas.outline(corner, (corner.0 + CELL.0 - 2, corner.1 + CELL.1 - 2), colour::GRID)?;
            let text = Lettering::plain(TEXT_SIZE, colour::text_on(ground), Align::Centre);
            canvas.text((middle(column), upper + CELL.1 / 2), text, &format!("{figure:.2}"))?;
        }
    }
    Ok(())
}

/// From white to the colour of what a picture is about: one hue, so that it reads in grey as well.
fn shade(part: f64) -> RGBColor {
    let mix =
        |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part.clamp(0.0, 1.0)) as u8;
    let (white, dark) = (colour::PAPER, colour::MAIN);
    RGBColor(mix(white.0, dark.0), mix(white.1, dark.1), mix(white.2, dark.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_a_colour_and_a_number_and_missing_ones_are_left_out() {
        let map = HeatMap {
            title: "receiver".into(),
            columns: vec!["1 KiB".into(), "1 MiB".into()],
            rows: vec![("0.5".into(), vec![1.0, 2.5]), ("1".into(), vec![f64::NAN, 1.25, 9.0])],
        };
        let svg = heat_svg("overlap", &[map], (1.0, 2.0)).unwrap();
        for part in ["1.00", "2.50", "1.25", "#FFFFFF", "#D55E00", "1 MiB"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("9.00"));
        assert!(heat_svg("overlap", &[], (1.0, 1.0)).unwrap().contains("no data"));
    }
}
