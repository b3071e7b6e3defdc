//! What each rail carried when: figure 3 of P4, for any strategies.
use super::axis::Axis;
use super::canvas::{Align, Canvas, Lettering, Pixel, PlotError, text_width};
use super::colour;
use crate::stats::{bytes_rounded, number};

const WIDTH: i32 = 920;
const TOP: i32 = 52;
const LANE: i32 = 30;
const LANE_GAP: i32 = 4;
const HEADING: i32 = 30;
const GROUP_GAP: i32 = 12;
const TEXT_SIZE: i32 = 12;
/// Narrower spans have no outline, in pixels.
const OUTLINED: i32 = 4;

/// A packet or chunk on a rail.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// When the rail began to carry it, in microseconds from the beginning of the picture.
    pub start_us: f64,
    /// When the rail was done with it.
    pub end_us: f64,
    /// Its length in bytes; none: it is no data.
    pub len: Option<u64>,
    /// The message it belongs to: spans of one label share a colour all over the picture. May be empty.
    pub label: String,
}

/// What one rail carried.
#[derive(Clone, Debug, PartialEq)]
pub struct RailLane {
    /// The name of the rail.
    pub label: String,
    /// The transfers that it carried, in any order.
    pub spans: Vec<Span>,
}

/// What the rails carried under one strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneGroup {
    /// The strategy.
    pub label: String,
    /// Its rails.
    pub rails: Vec<RailLane>,
}

impl LaneGroup {
    fn end_us(&self) -> f64 {
        self.rails
            .iter()
            .flat_map(|rail| &rail.spans)
            .filter(|s| is_drawable(s))
            .fold(0.0, |end, s| s.end_us.max(end))
    }

    fn height(&self) -> i32 {
        HEADING + self.rails.len() as i32 * (LANE + LANE_GAP) + GROUP_GAP
    }
}

/// The groups one above the other on a common time axis. Each span is a rectangle with its label and length
/// in it as far as they fit; above a group's lanes stands when its last rail was done. Spans with no finite,
/// ordered times are left out.
pub fn timeline_svg(title: &str, groups: &[LaneGroup]) -> Result<String, PlotError> {
    let names = groups.iter().flat_map(|group| &group.rails).map(|rail| text_width(&rail.label, TEXT_SIZE));
    let left = names.max().unwrap_or(0).clamp(40, WIDTH / 3) + 24;
    let end = groups.iter().map(LaneGroup::end_us).fold(0.0, f64::max);
    let axis = Axis::linear_until(end, 8, (left, WIDTH - 36));
    let labels = message_labels(groups);
    let bottom = TOP + groups.iter().map(LaneGroup::height).sum::<i32>().max(40);
    let legend = legend_rows(&labels, left);
    let height = bottom + 52 + legend.last().map_or(0, |entry| entry.0.1 + 24);
    Canvas::picture((WIDTH as u32, height as u32), |canvas| {
        canvas.text((16, 26), Lettering::bold(17, colour::INK, Align::Left), title)?;
        time_axis(canvas, &axis, bottom)?;
        let mut top = TOP;
        for group in groups {
            draw_group(canvas, group, &axis, &labels, top)?;
            top += group.height();
        }
        if end <= 0.0 {
            let middle = ((left + WIDTH) / 2, (TOP + bottom) / 2);
            canvas.text(middle, Lettering::plain(15, colour::FAINT_INK, Align::Centre), "no data")?;
        }
        draw_legend(canvas, &legend, bottom + 58)
    })
}

fn is_drawable(span: &Span) -> bool {
    span.start_us.is_finite()
        && span.end_us.is_finite()
        && 0.0 <= span.start_us
        && span.start_us <= span.end_us
}

/// The distinct labels of all spans, in order of appearance; their place decides their colour.
fn message_labels(groups: &[LaneGroup]) -> Vec<&str> {
    let mut labels: Vec<&str> = Vec::new();
    for span in groups.iter().flat_map(|group| &group.rails).flat_map(|rail| &rail.spans) {
        if !span.label.is_empty() && !labels.contains(&span.label.as_str()) {
            labels.push(&span.label);
        }
    }
    labels
}

fn time_axis(canvas: &Canvas<'_>, axis: &Axis, bottom: i32) -> Result<(), PlotError> {
    for (value, x) in axis.ticks() {
        canvas.line([(x, TOP), (x, bottom)], colour::GRID, 1)?;
        let label = format!("{value} us");
        canvas.text((x, bottom + 16), Lettering::plain(TEXT_SIZE, colour::INK, Align::Centre), &label)?;
    }
    Ok(())
}

fn draw_group(
    canvas: &Canvas<'_>,
    group: &LaneGroup,
    axis: &Axis,
    labels: &[&str],
    top: i32,
) -> Result<(), PlotError> {
    let (left, right) = (axis.pixel(0.0), WIDTH - 16);
    let done = group.end_us();
    canvas.text((16, top + HEADING / 2), Lettering::bold(14, colour::INK, Align::Left), &group.label)?;
    let mut y = top + HEADING;
    for (index, rail) in group.rails.iter().enumerate() {
        canvas.rect((left, y), (right, y + LANE), colour::BAND)?;
        let name = Lettering::plain(TEXT_SIZE, colour::INK, Align::Right);
        canvas.text((left - 8, y + LANE / 2), name, &rail.label)?;
        for span in rail.spans.iter().filter(|span| is_drawable(span)) {
            let known = labels.iter().position(|label| *label == span.label);
            draw_span(canvas, span, known.unwrap_or(index), axis, y)?;
        }
        y += LANE + LANE_GAP;
    }
    match done > 0.0 {
        true => draw_end(canvas, group, axis.pixel(done), (top, y)),
        false => Ok(()),
    }
}

/// A line where the last rail of the group was done, with the time above it but never over the group's name.
fn draw_end(
    canvas: &Canvas<'_>,
    group: &LaneGroup,
    x: i32,
    (top, bottom): (i32, i32),
) -> Result<(), PlotError> {
    let text = format!("{} us", number(group.end_us()));
    let name_end = 16 + text_width(&group.label, 14) + 16;
    let at = (x.max(name_end + text_width(&text, TEXT_SIZE)), top + HEADING - 16);
    canvas.line([(x, top + HEADING - 8), (x, bottom)], colour::INK, 1)?;
    canvas.text(at, Lettering::bold(TEXT_SIZE, colour::INK, Align::Right), &text)
}

fn draw_span(
    canvas: &Canvas<'_>,
    span: &Span,
    colour_index: usize,
    axis: &Axis,
    y: i32,
) -> Result<(), PlotError> {
    let fill = colour::series(colour_index);
    let (from, to): (Pixel, Pixel) = ((axis.pixel(span.start_us), y), (axis.pixel(span.end_us), y + LANE));
    canvas.rect(from, to, fill)?;
    // A white outline keeps neighbours of one colour apart, and would be all that is seen of a narrow one.
    if to.0 - from.0 >= OUTLINED {
        canvas.outline(from, to, colour::PAPER)?;
    }
    let len = span.len.map_or_else(String::new, bytes_rounded);
    let texts = [format!("{}  {len}", span.label), len.clone(), span.label.clone()];
    let fitting =
        texts.iter().map(|text| text.trim()).find(|text| text_width(text, TEXT_SIZE) + 4 <= to.0 - from.0);
    let Some(text) = fitting.filter(|text| !text.is_empty()) else { return Ok(()) };
    let middle = ((from.0 + to.0) / 2, y + LANE / 2);
    canvas.text(middle, Lettering::plain(TEXT_SIZE, colour::text_on(fill), Align::Centre), text)
}

/// Where each label of the legend goes (relative to the legend), with its colour's number: in rows as wide as
/// the picture.
fn legend_rows<'a>(labels: &[&'a str], left: i32) -> Vec<(Pixel, usize, &'a str)> {
    let mut at = (left, 0);
    let mut entries = Vec::new();
    for (index, label) in labels.iter().enumerate() {
        let width = text_width(label, TEXT_SIZE) + 44;
        if at.0 > left && at.0 + width > WIDTH {
            at = (left, at.1 + 22);
        }
        entries.push((at, index, *label));
        at.0 += width;
    }
    entries
}

fn draw_legend(canvas: &Canvas<'_>, entries: &[(Pixel, usize, &str)], top: i32) -> Result<(), PlotError> {
    for ((x, y), index, label) in entries {
        let y = top + y;
        canvas.rect((*x, y - 7), (x + 14, y + 7), colour::series(*index))?;
        canvas.text((x + 20, y), Lettering::plain(TEXT_SIZE, colour::INK, Align::Left), label)?;
    }
    Ok(())
}
