//! Times of several libraries in several cases, each as a dot with its spread on one logarithmic axis.
use plotters::style::RGBColor;

use super::axis::Axis;
use super::canvas::{Align, Canvas, Lettering, PlotError, text_width};
use super::colour;
use crate::stats::{Summary, number};

const WIDTH: i32 = 920;
const TOP: i32 = 56;
const LANE: i32 = 20;
const HEADING: i32 = 26;
const GAP: i32 = 10;
const TEXT_SIZE: i32 = 13;

/// One library in one case.
#[derive(Clone, Debug, PartialEq)]
pub struct Dot {
    /// The name of the library.
    pub label: String,
    /// Whether the picture is about it.
    pub is_main: bool,
    /// Its times in microseconds; the whisker goes from the lowest to the highest.
    pub summary: Summary,
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct DotGroup {
    /// The name of the measurement.
    pub label: String,
    /// One for each library.
    pub dots: Vec<Dot>,
}

impl DotGroup {
    fn height(&self) -> i32 {
        HEADING + self.dots.len() as i32 * LANE + GAP
    }
}

/// The cases one above the other. A library has the same colour in all of them.
pub fn dots_svg(title: &str, groups: &[DotGroup]) -> Result<String, PlotError> {
    let dots = || groups.iter().flat_map(|group| &group.dots);
    let names = dots().map(|dot| text_width(&dot.label, TEXT_SIZE + 1));
    let left = names.max().unwrap_or(0).clamp(40, WIDTH / 3) + 30;
    let (low, high) = dots().map(|dot| &dot.summary).fold((f64::MAX, 0.0), |(low, high), summary| {
        (f64::min(low, summary.min), f64::max(high, summary.max))
    });
    let range = if low > 0.0 && high.is_finite() && high > 0.0 { low..=high } else { 1.0..=10.0 };
    let axis = Axis::log(range, 10.0, 8, (left, WIDTH - 90));
    let bottom = TOP + groups.iter().map(DotGroup::height).sum::<i32>().max(40);
    let colours = colours(groups);
    Canvas::picture((WIDTH as u32, (bottom + 46) as u32), |canvas| {
        canvas.text((16, 26), Lettering::bold(17, colour::INK, Align::Left), title)?;
        for (value, x) in axis.ticks() {
            canvas.line([(x, TOP), (x, bottom)], colour::GRID, 1)?;
            let label = format!("{value} us");
            canvas.text((x, bottom + 18), Lettering::plain(12, colour::INK, Align::Centre), &label)?;
        }
        let mut top = TOP;
        for group in groups {
            draw_group(canvas, group, &axis, &colours, top)?;
            top += group.height();
        }
        match groups.is_empty() {
            true => canvas.text(
                (WIDTH / 2, (TOP + bottom) / 2),
                Lettering::plain(15, colour::FAINT_INK, Align::Centre),
                "no data",
            ),
            false => Ok(()),
        }
    })
}

/// The libraries in order of appearance, each with its colour.
fn colours(groups: &[DotGroup]) -> Vec<(&str, RGBColor)> {
    let mut colours: Vec<(&str, RGBColor)> = Vec::new();
    let mut next = 0;
    for dot in groups.iter().flat_map(|group| &group.dots) {
        if colours.iter().any(|(label, _)| *label == dot.label) {
            continue;
        }
        let colour = if dot.is_main { colour::MAIN } else { colour::series(next) };
        next += usize::from(!dot.is_main);
        colours.push((&dot.label, colour));
    }
    colours
}

fn draw_group(
    canvas: &Canvas<'_>,
    group: &DotGroup,
    axis: &Axis,
    colours: &[(&str, RGBColor)],
    top: i32,
) -> Result<(), PlotError> {
    canvas.text((16, top + HEADING / 2), Lettering::bold(14, colour::INK, Align::Left), &group.label)?;
    let lanes = (0..).map(|lane| top + HEADING + LANE / 2 + lane * LANE);
    group.dots.iter().zip(lanes).try_for_each(|(dot, y)| {
        let colour =
            colours.iter().find(|(label, _)| *label == dot.label).map_or(colour::INK, |found| found.1);
        draw_dot(canvas, dot, axis, colour, y)
    })
}

fn draw_dot(canvas: &Canvas<'_>, dot: &Dot, axis: &Axis, colour: RGBColor, y: i32) -> Result<(), PlotError> {
    let lettering = |align| match dot.is_main {
        true => Lettering::bold(TEXT_SIZE, colour::INK, align),
        false => Lettering::plain(TEXT_SIZE, colour::INK, align),
    };
    let Summary { min, median, max, .. } = dot.summary;
    let (from, at, to) = (axis.pixel(min), axis.pixel(median), axis.pixel(max));
    canvas.text((axis.pixel(0.0) - 14, y), lettering(Align::Right), &dot.label)?;
    canvas.line([(from, y), (to, y)], colour, 3)?;
    canvas.mark((at, y), 0, colour)?;
    canvas.text((to.max(at) + 12, y), lettering(Align::Left), &format!("{} us", number(median)))
}
