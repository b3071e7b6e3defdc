//! How often a time is at most so long: one rising curve for each case, on a logarithmic time axis.
use super::axis::Axis;
use super::canvas::{Align, Canvas, Lettering, PlotError, text_width};
use super::colour;

const SIZE: (i32, i32) = (920, 460);
const TOP: i32 = 56;
const BOTTOM: i32 = SIZE.1 - 60;
const LEFT: i32 = 64;
const TEXT_SIZE: i32 = 13;

/// The times of one case in milliseconds, in any order. Times of zero are drawn as the least time.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The name of the case.
    pub label: String,
    /// Its times.
    pub times_ms: Vec<f64>,
}

/// The least time that is drawn.
const LEAST_MS: f64 = 0.1;

/// Draws the share of times, in percent, that are at most so long. `bounds_ms` are marked by dashed lines.
pub fn distribution_svg(title: &str, cases: &[Distribution], bounds_ms: &[f64]) -> Result<String, PlotError> {
    let longest = cases.iter().map(|case| text_width(&case.label, TEXT_SIZE)).max().unwrap_or(0);
    let right = SIZE.0 - longest.clamp(60, SIZE.0 / 3) - 50;
    let times = || cases.iter().flat_map(|case| &case.times_ms).copied().filter(|time| time.is_finite());
    let most = times().chain(bounds_ms.iter().copied()).fold(10.0 * LEAST_MS, f64::max);
    let axis = Axis::log(LEAST_MS..=most, 10.0, 8, (LEFT, right));
    let height = Axis::linear_until(100.0, 5, (BOTTOM, TOP));
    Canvas::picture((SIZE.0 as u32, SIZE.1 as u32), |canvas| {
        canvas.text((16, 26), Lettering::bold(17, colour::INK, Align::Left), title)?;
        frame(canvas, &axis, &height, right, bounds_ms)?;
        if times().next().is_none() {
            let faint = Lettering::plain(15, colour::FAINT_INK, Align::Centre);
            return canvas.text(((LEFT + right) / 2, (TOP + BOTTOM) / 2), faint, "no data");
        }
        for (index, case) in cases.iter().enumerate() {
            draw(canvas, case, index, (&axis, &height), right)?;
        }
        Ok(())
    })
}

fn frame(
    canvas: &Canvas<'_>,
    axis: &Axis,
    height: &Axis,
    right: i32,
    bounds_ms: &[f64],
) -> Result<(), PlotError> {
    let plain = |align| Lettering::plain(12, colour::INK, align);
    for (value, x) in axis.ticks() {
        canvas.line([(x, TOP), (x, BOTTOM)], colour::GRID, 1)?;
        canvas.text((x, BOTTOM + 18), plain(Align::Centre), &format!("{value} ms"))?;
    }
    for (value, y) in height.ticks() {
        canvas.line([(LEFT, y), (right, y)], colour::GRID, 1)?;
        canvas.text((LEFT - 8, y), plain(Align::Right), &format!("{value} %"))?;
    }
    for &bound in bounds_ms {
        let x = axis.pixel(bound);
        canvas.dashed([(x, TOP), (x, BOTTOM)], colour::BASELINE, 2)?;
        canvas.text(
            (x, TOP - 10),
            Lettering::plain(12, colour::FAINT_INK, Align::Centre),
            &format!("{bound} ms"),
        )?;
    }
    Ok(())
}

fn draw(
    canvas: &Canvas<'_>,
    case: &Distribution,
    index: usize,
    (axis, height): (&Axis, &Axis),
    right: i32,
) -> Result<(), PlotError> {
    let mut times: Vec<f64> = case.times_ms.iter().copied().filter(|time| time.is_finite()).collect();
    times.sort_by(f64::total_cmp);
    let colour = colour::series(index);
    let mut points = vec![(LEFT, BOTTOM)];
    for (place, time) in times.iter().enumerate() {
        let x = axis.pixel(time.max(LEAST_MS));
        let share = |count: usize| height.pixel(100.0 * count as f64 / times.len() as f64);
        points.extend([(x, share(place)), (x, share(place + 1))]);
    }
    canvas.line(points, colour, 2)?;
    // The names stand one below the other, each beside a piece of its line.
    let y = TOP + 14 + index as i32 * 20;
    canvas.line([(right + 14, y), (right + 34, y)], colour, 3)?;
    canvas.text((right + 40, y), Lettering::plain(TEXT_SIZE, colour::INK, Align::Left), &case.label)
}
