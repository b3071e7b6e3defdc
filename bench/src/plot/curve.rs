//! Curves over the message size.
use plotters::style::RGBColor;

use super::axis::Axis;
use super::canvas::{Align, Canvas, Lettering, Pixel, PlotError, text_width};
use super::colour;
use crate::stats::bytes;

const WIDTH: i32 = 920;
const HEIGHT: i32 = 480;
const LEFT: i32 = 76;
/// Above the curves: the title, and a line for what happens at the marks.
const TOP: i32 = 88;
/// Below the curves: the axis of sizes.
const FOOT: i32 = 56;
const LABEL_SIZE: i32 = 13;
/// From one label to the next.
const LABEL_STEP: i32 = 18;

/// How a curve stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// One of several.
    #[default]
    Plain,
    /// What the others are compared with: dashed and grey.
    Baseline,
    /// What the picture is about: bold.
    Main,
}

/// One value of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Message size in bytes.
    pub len: u64,
    /// The value there, a median.
    pub value: f64,
    /// The quartiles around it, where there are several samples.
    pub quartiles: Option<(f64, f64)>,
}

impl From<(u64, f64)> for Point {
    fn from((len, value): (u64, f64)) -> Point {
        Point { len, value, quartiles: None }
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The text at its end.
    pub label: String,
    /// How it stands out.
    pub role: Role,
    /// Sizes of zero and values that are no positive numbers cannot be drawn and are left out. Points are
    /// joined in order of size.
    pub points: Vec<Point>,
}

/// A size that matters, as a line from top to bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The size in bytes; zero cannot be drawn and is left out.
    pub len: u64,
    /// What changes there.
    pub label: String,
}

/// Bandwidth in MB/s (linear) over the message size (logarithmic).
pub fn bandwidth_svg(title: &str, series: &[Series]) -> Result<String, PlotError> {
    bandwidth_svg_with(title, series, &[])
}

/// [`bandwidth_svg`] with marks.
pub fn bandwidth_svg_with(title: &str, series: &[Series], marks: &[Mark]) -> Result<String, PlotError> {
    let highest = values(series).fold(0.0, f64::max);
    curves(title, "MB/s", (series, marks), |pixels| Axis::linear(highest, 6, pixels))
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
    curves(title, "us", (series, marks), |pixels| Axis::log(range, 10.0, 8, pixels))
}

/// Times relative to the fastest way over the message size, both logarithmic.
pub fn ratio_svg(title: &str, series: &[Series]) -> Result<String, PlotError> {
    let highest = values(series).fold(2.0, f64::max);
    curves(title, "times", (series, &[]), |pixels| Axis::log(1.0..=highest, 2.0, 8, pixels))
}

/// The points that can be drawn, in order of size.
fn drawable(series: &Series) -> Vec<Point> {
    let is_drawable = |point: &Point| point.len > 0 && point.value.is_finite() && point.value > 0.0;
    let mut points: Vec<_> = series.points.iter().copied().filter(is_drawable).collect();
    points.sort_by_key(|point| point.len);
    points
}

fn values(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(drawable).map(|point| point.value)
}

/// A curve with its looks.
struct Stroke<'a> {
    series: &'a Series,
    colour: RGBColor,
    /// Decides the shape of its points.
    shape: usize,
    /// Its points as pixels.
    points: Vec<Pixel>,
    /// The outline of its quartiles; empty without.
    band: Vec<Pixel>,
}

fn curves(
    title: &str,
    unit: &str,
    (series, marks): (&[Series], &[Mark]),
    y_axis: impl FnOnce((i32, i32)) -> Axis,
) -> Result<String, PlotError> {
    let longest = series.iter().map(|one| text_width(&one.label, LABEL_SIZE + 1)).max();
    let labels = longest.map_or(30, |width| width + 62);
    // A long label widens the picture, and many labels make it higher; they never narrow the curves to
    // nothing.
    let right = (WIDTH - labels).max(LEFT + 300);
    let bottom = (HEIGHT - FOOT).max(TOP + LABEL_STEP * series.len() as i32);
    let size = (WIDTH.max(right + labels) as u32, (bottom + FOOT) as u32);
    let (x_axis, y_axis) = (size_axis(series, (LEFT, right)), y_axis((bottom, TOP)));
    let strokes = strokes(series, &x_axis, &y_axis);
    Canvas::picture(size, |canvas| {
        frame(canvas, title, unit, (&x_axis, &y_axis), (right, bottom))?;
        marks
            .iter()
            .filter(|mark| mark.len > 0)
            .try_for_each(|mark| line_at(canvas, mark, x_axis.pixel(mark.len as f64), (right, bottom)))?;
        for stroke in strokes.iter().filter(|stroke| !stroke.band.is_empty()) {
            canvas.veil(stroke.band.clone(), stroke.colour)?;
        }
        // What the picture is about lies on top.
        let is_main = |stroke: &&Stroke<'_>| stroke.series.role == Role::Main;
        let (main, others): (Vec<_>, Vec<_>) = strokes.iter().partition(is_main);
        others.into_iter().chain(main).try_for_each(|stroke| draw(canvas, stroke))?;
        labels_at_ends(canvas, &strokes, (right, bottom))?;
        if strokes.iter().any(|stroke| !stroke.band.is_empty()) {
            let note = "bands: from the lower to the upper quartile";
            canvas.text((LEFT, bottom + 42), Lettering::plain(12, colour::FAINT_INK, Align::Left), note)?;
        }
        if values(series).next().is_none() {
            let faint = Lettering::plain(15, colour::FAINT_INK, Align::Centre);
            canvas.text(((LEFT + right) / 2, (TOP + bottom) / 2), faint, "no data")?;
        }
        Ok(())
    })
}

/// Gives each series its colour: those of a role have their own, the others take the next of the palette.
fn strokes<'a>(series: &'a [Series], x_axis: &Axis, y_axis: &Axis) -> Vec<Stroke<'a>> {
    let mut next = 0;
    let mut stroke = |(shape, series): (usize, &'a Series)| {
        let colour = match series.role {
            Role::Main => colour::MAIN,
            Role::Baseline => colour::BASELINE,
            Role::Plain => {
                next += 1;
                colour::series(next - 1)
            }
        };
        let points = drawable(series);
        let at = |point: &Point, value: f64| (x_axis.pixel(point.len as f64), y_axis.pixel(value));
        let spread = |point: &Point| point.quartiles.filter(|(low, high)| *low > 0.0 && high.is_finite());
        let banded: Vec<(&Point, (f64, f64))> =
            points.iter().filter_map(|point| Some((point, spread(point)?))).collect();
        let upper = banded.iter().map(|(point, (_, high))| at(point, *high));
        let lower = banded.iter().rev().map(|(point, (low, _))| at(point, *low));
        let band = if banded.len() > 1 { upper.chain(lower).collect() } else { Vec::new() };
        Stroke { series, colour, shape, points: points.iter().map(|p| at(p, p.value)).collect(), band }
    };
    series.iter().enumerate().map(&mut stroke).collect()
}

/// The axis of message sizes: powers of two that cover all points.
fn size_axis(series: &[Series], pixels: (i32, i32)) -> Axis {
    let lens = || series.iter().flat_map(drawable).map(|point| point.len as f64);
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
    (x_axis, y_axis): (&Axis, &Axis),
    (right, bottom): Pixel,
) -> Result<(), PlotError> {
    canvas.text((LEFT, 26), Lettering::bold(17, colour::INK, Align::Left), title)?;
    canvas.text((LEFT - 8, TOP - 20), Lettering::plain(12, colour::FAINT_INK, Align::Right), unit)?;
    for (value, y) in y_axis.ticks() {
        canvas.line([(LEFT, y), (right, y)], colour::GRID, 1)?;
        canvas.text((LEFT - 8, y), Lettering::plain(12, colour::INK, Align::Right), &plain_number(value))?;
    }
    for (value, x) in x_axis.ticks() {
        canvas.line([(x, bottom), (x, bottom + 5)], colour::FAINT_INK, 1)?;
        let label = bytes(value as u64);
        canvas.text((x, bottom + 18), Lettering::plain(12, colour::INK, Align::Centre), &label)?;
    }
    canvas.line([(LEFT, bottom), (right, bottom)], colour::FAINT_INK, 1)?;
    let middle = ((LEFT + right) / 2, bottom + 42);
    canvas.text(middle, Lettering::plain(12, colour::FAINT_INK, Align::Centre), "message size")
}

/// The curve, dashed if it is the baseline, and its points.
fn draw(canvas: &Canvas<'_>, stroke: &Stroke<'_>) -> Result<(), PlotError> {
    let points = &stroke.points;
    if points.len() > 1 {
        match stroke.series.role {
            Role::Plain => canvas.line(points.clone(), stroke.colour, 2)?,
            Role::Baseline => canvas.dashed(points.clone(), stroke.colour, 2)?,
            Role::Main => canvas.line(points.clone(), stroke.colour, 4)?,
        }
    }
    points.iter().try_for_each(|point| canvas.mark(*point, stroke.shape, stroke.colour))
}

/// What changes at a size: a line at it, and words above the curves on the side where they have more room.
fn line_at(canvas: &Canvas<'_>, mark: &Mark, x: i32, (right, bottom): Pixel) -> Result<(), PlotError> {
    canvas.dashed([(x, TOP - 8), (x, bottom)], colour::FAINT_INK, 1)?;
    let (align, at) = if x > (LEFT + right) / 2 { (Align::Right, x - 4) } else { (Align::Left, x + 4) };
    canvas.text((at, TOP - 16), Lettering::bold(12, colour::FAINT_INK, align), &mark.label)
}

/// Each curve's label beside its last point, moved as far as needed to keep labels apart, with a dotted line
/// between both. Series without points are listed below.
fn labels_at_ends(
    canvas: &Canvas<'_>,
    strokes: &[Stroke<'_>],
    (right, bottom): Pixel,
) -> Result<(), PlotError> {
    let mut ends: Vec<(&Stroke<'_>, i32)> =
        strokes.iter().map(|stroke| (stroke, stroke.points.last().map_or(bottom, |end| end.1))).collect();
    ends.sort_by_key(|(_, y)| *y);
    let wanted: Vec<i32> = ends.iter().map(|(_, y)| *y).collect();
    for ((stroke, _), y) in ends.iter().zip(apart(&wanted, bottom)) {
        let x = right + 28;
        if let Some(end) = stroke.points.last() {
            // Dotted and grey: it is no data.
            canvas.dotted([(end.0 + 8, end.1), (right + 8, end.1), (x - 8, y)], colour::FAINT_INK)?;
        }
        canvas.mark((x, y), stroke.shape, stroke.colour)?;
        let lettering = match stroke.series.role {
            Role::Plain => Lettering::plain(LABEL_SIZE, colour::INK, Align::Left),
            Role::Baseline => Lettering::plain(LABEL_SIZE, colour::FAINT_INK, Align::Left),
            Role::Main => Lettering::bold(LABEL_SIZE, colour::INK, Align::Left),
        };
        canvas.text((x + 12, y), lettering, &stroke.series.label)?;
    }
    Ok(())
}

/// Heights for labels that would like to be at `wanted` (in order), [`LABEL_STEP`] apart and none below
/// `bottom`.
fn apart(wanted: &[i32], bottom: i32) -> Vec<i32> {
    let mut next = i32::MIN;
    let mut places: Vec<i32> = Vec::with_capacity(wanted.len());
    for &y in wanted {
        next = y.max(next);
        places.push(next);
        next += LABEL_STEP;
    }
    let mut limit = bottom;
    for place in places.iter_mut().rev() {
        *place = (*place).min(limit);
        limit = *place - LABEL_STEP;
    }
    places
}

/// A tick's value without superfluous zeros: `0`, `0.25`, `12000`.
fn plain_number(value: f64) -> String {
    // Nine decimals cut the noise of 3 * 0.1; Display then drops the zeros.
    let rounded = (value * 1e9).round() / 1e9;
    format!("{rounded}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart() {
        assert_eq!(apart(&[100, 101, 300], 400), [100, 118, 300]);
        assert_eq!(apart(&[395, 396, 400], 400), [364, 382, 400]);
        assert_eq!(apart(&[], 400), [0; 0]);
    }
}
