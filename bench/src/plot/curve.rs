//! Curves over the message size.
use super::axis::Axis;
use super::canvas::{Align, Canvas, Lettering, PlotError, text_width};
use super::colour;
use crate::stats::bytes;

const SIZE: (u32, u32) = (920, 480);
const LEFT: i32 = 76;
const TOP: i32 = 74;
const BOTTOM: i32 = 424;
const LEGEND_SIZE: i32 = 13;

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it.
    pub label: String,
    /// Message size in bytes, and the value there. Sizes of zero and values that are no positive numbers
    /// cannot be drawn and are left out. Points are joined in order of size.
    pub points: Vec<(u64, f64)>,
}

/// A size that matters, as a line from top to bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The size in bytes; zero cannot be drawn and is left out.
    pub len: u64,
    /// What stands beside the line.
    pub label: String,
}

/// Bandwidth in MB/s (linear) over the message size (logarithmic).
pub fn bandwidth_svg(title: &str, series: &[Series]) -> Result<String, PlotError> {
    bandwidth_svg_with(title, series, &[])
}

/// [`bandwidth_svg`] with marks.
pub fn bandwidth_svg_with(title: &str, series: &[Series], marks: &[Mark]) -> Result<String, PlotError> {
    let highest = values(series).fold(0.0, f64::max);
    curves(title, "MB/s", (series, marks), Axis::linear(highest, 6, (BOTTOM, TOP)))
}

/// Time in microseconds over the message size, both logarithmic.
pub fn latency_svg(title: &str, series: &[Series]) -> Result<String, PlotError> {
    latency_svg_with(title, series, &[])
}

/// [`latency_svg`] with marks.
pub fn latency_svg_with(title: &str, series: &[Series], marks: &[Mark]) -> Result<String, PlotError> {
    let (low, high) =
        values(series).fold((f64::MAX, 0.0), |(low, high), v| (f64::min(low, v), f64::max(high, v)));
    let range = if high > 0.0 { low..=high } else { 1.0..=1000.0 };
    curves(title, "us", (series, marks), Axis::log(range, 10.0, 8, (BOTTOM, TOP)))
}

/// The points that can be drawn, in order of size.
fn drawable(series: &Series) -> Vec<(u64, f64)> {
    let is_drawable = |(len, value): &(u64, f64)| *len > 0 && value.is_finite() && *value > 0.0;
    let mut points: Vec<_> = series.points.iter().copied().filter(is_drawable).collect();
    points.sort_by_key(|(len, _)| *len);
    points
}

fn values(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(drawable).map(|(_, value)| value)
}

fn curves(
    title: &str,
    unit: &str,
    (series, marks): (&[Series], &[Mark]),
    y_axis: Axis,
) -> Result<String, PlotError> {
    let legend = series.iter().map(|s| text_width(&s.label, LEGEND_SIZE)).max().map_or(0, |width| width + 58);
    let right = (SIZE.0 as i32 - legend.max(30)).max(LEFT + 300);
    // A long label widens the picture, it never narrows the curves to nothing.
    let width = SIZE.0.max((right + legend) as u32);
    let x_axis = size_axis(series, (LEFT, right));
    Canvas::picture((width, SIZE.1), |canvas| {
        frame(canvas, title, unit, &x_axis, &y_axis, right)?;
        marks.iter().filter(|mark| mark.len > 0).try_for_each(|mark| line_at(canvas, mark, &x_axis))?;
        for (index, one) in series.iter().enumerate() {
            curve(canvas, index, one, &x_axis, &y_axis)?;
            legend_entry(canvas, index, &one.label, right + 18)?;
        }
        if values(series).next().is_none() {
            let faint = Lettering::plain(15, colour::FAINT_INK, Align::Centre);
            canvas.text(((LEFT + right) / 2, (TOP + BOTTOM) / 2), faint, "no data")?;
        }
        Ok(())
    })
}

/// The axis of message sizes: powers of two that cover all points.
fn size_axis(series: &[Series], pixels: (i32, i32)) -> Axis {
    let lens = || series.iter().flat_map(drawable).map(|(len, _)| len as f64);
    let (low, high) =
        lens().fold((f64::MAX, 0.0), |(low, high), len| (f64::min(low, len), f64::max(high, len)));
    let range = if high > 0.0 { low..=high } else { 1024.0..=1048576.0 };
    Axis::log(range, 2.0, 11, pixels)
}

/// Title, grid and the labels of both axes.
fn frame(
    canvas: &Canvas<'_>,
    title: &str,
    unit: &str,
    x_axis: &Axis,
    y_axis: &Axis,
    right: i32,
) -> Result<(), PlotError> {
    canvas.text((LEFT, 26), Lettering::bold(17, colour::INK, Align::Left), title)?;
    canvas.text((LEFT - 8, TOP - 20), Lettering::plain(12, colour::FAINT_INK, Align::Right), unit)?;
    for (value, y) in y_axis.ticks() {
        canvas.line([(LEFT, y), (right, y)], colour::GRID, 1)?;
        canvas.text((LEFT - 8, y), Lettering::plain(12, colour::INK, Align::Right), &plain_number(value))?;
    }
    for (value, x) in x_axis.ticks() {
        canvas.line([(x, BOTTOM), (x, BOTTOM + 5)], colour::FAINT_INK, 1)?;
        let label = bytes(value as u64);
        canvas.text((x, BOTTOM + 18), Lettering::plain(12, colour::INK, Align::Centre), &label)?;
    }
    canvas.line([(LEFT, BOTTOM), (right, BOTTOM)], colour::FAINT_INK, 1)?;
    let middle = ((LEFT + right) / 2, BOTTOM + 42);
    canvas.text(middle, Lettering::plain(12, colour::FAINT_INK, Align::Centre), "message size")
}

fn curve(
    canvas: &Canvas<'_>,
    index: usize,
    one: &Series,
    x_axis: &Axis,
    y_axis: &Axis,
) -> Result<(), PlotError> {
    let points: Vec<_> =
        drawable(one).iter().map(|(len, value)| (x_axis.pixel(*len as f64), y_axis.pixel(*value))).collect();
    if points.len() > 1 {
        canvas.line(points.clone(), colour::series(index), 2)?;
    }
    points.into_iter().try_for_each(|point| canvas.mark(point, index))
}

fn line_at(canvas: &Canvas<'_>, mark: &Mark, x_axis: &Axis) -> Result<(), PlotError> {
    let x = x_axis.pixel(mark.len as f64);
    canvas.line([(x, TOP), (x, BOTTOM)], colour::FAINT_INK, 1)?;
    canvas.text((x + 4, TOP + 8), Lettering::bold(12, colour::FAINT_INK, Align::Left), &mark.label)
}

fn legend_entry(canvas: &Canvas<'_>, index: usize, label: &str, x: i32) -> Result<(), PlotError> {
    let y = TOP + 8 + 22 * index as i32;
    canvas.line([(x, y), (x + 24, y)], colour::series(index), 2)?;
    canvas.mark((x + 12, y), index)?;
    canvas.text((x + 32, y), Lettering::plain(LEGEND_SIZE, colour::INK, Align::Left), label)
}

/// A tick's value without superfluous zeros: `0`, `0.25`, `12000`.
fn plain_number(value: f64) -> String {
    // Nine decimals cut the noise of 3 * 0.1; Display then drops the zeros.
    let rounded = (value * 1e9).round() / 1e9;
    format!("{rounded}")
}
