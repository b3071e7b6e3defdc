//! The picture of a report: a row for what each rank did, one for each of its rails, and lines for messages.
//!
//! All of the time is [`WIDTH`] wide, so that the script of the page zooms by the `viewBox` alone.

use nmad_bench::stats::{bytes, number};
use nmad_words::escaped;
use std::fmt::Write;

use super::bars::{Bars, bars};
use super::links::Links;
use super::messages::Message;
use super::records::{Access, Records, program_ns};
use super::show::us;
use super::states::{State, threads};

/// Messages that are drawn; of more, the longest.
const LINES: usize = 1_000;
/// Bars of a row that are drawn; of more, those that last longest.
const BARS: usize = 4_000;
/// Heights of rows, in pixels.
const RANK: u32 = 26;
const RAIL: u32 = 14;
const GAP: u32 = 4;
/// Between the rows of two ranks.
const RANK_GAP: u32 = 12;
/// The width of all of the time. Browsers keep coordinates up to some 30 million, so they cannot be
/// nanoseconds; three decimals still tell times of a billionth of the whole apart.
const WIDTH: f64 = 1e6;
/// Times below the picture.
const TICKS: u32 = 6;

/// A row of the picture.
struct Row<'a> {
    name: String,
    top: u32,
    height: u32,
    bars: Vec<Bar<'a>>,
    /// Bars that are too many to draw.
    left_out: usize,
}

struct Bar<'a> {
    start_ns: u64,
    end_ns: u64,
    fill: String,
    what: std::borrow::Cow<'a, str>,
}

/// Where ranks and times are.
struct Picture<'a> {
    rows: Vec<Row<'a>>,
    /// The middle of each rank's row.
    ranks: Vec<(u32, u32)>,
    height: u32,
    start_ns: u64,
    end_ns: u64,
}

/// Adds the picture to a page; nothing, if no time passed.
pub(super) fn drawing(out: &mut String, all: &[Records], messages: &[Message]) {
    let Some((start_ns, end_ns)) = program_ns(all).filter(|(start, end)| end > start) else { return };
    let picture = Picture::of(all, (start_ns, end_ns));
    *out += "<h2>What each rank and rail did</h2>\n<p>";
    for state in State::ALL {
        let _ = write!(out, "<i style=\"background:{}\"></i>{}", colour(state), state.name());
    }
    let _ = write!(
        out,
        "<i style=\"background:{PACKET}\"></i>packet on a rail<i style=\"background:{CHUNK}\"></i>chunk on a \
         rail<i style=\"background:{FILE}\"></i>file</p>\n<p>Thin lines are messages. The wheel zooms, \
         dragging moves, a double click shows all.</p>\n"
    );
    let mut lines: Vec<&Message> = messages.iter().filter(|message| message.arrived_ns.is_some()).collect();
    let count = lines.len();
    lines.sort_by_key(|message| std::cmp::Reverse(message.len));
    lines.truncate(LINES);
    let cut = (count > LINES).then(|| format!("Of {count} messages the {LINES} longest are drawn."));
    for text in picture.left_out().into_iter().chain(cut) {
        let _ = writeln!(out, "<p class=\"cut\">{text}</p>");
    }
    *out += "<div id=\"picture\"><div id=\"names\">";
    let mut end = 0;
    for row in &picture.rows {
        let (above, height) = (row.top - end, row.height);
        let _ =
            write!(out, "<div style=\"margin-top:{above}px;height:{height}px\">{}</div>", escaped(&row.name));
        end = row.top + row.height;
    }
    *out += "</div><div>";
    picture.draw(out, &lines);
    *out += "<div id=\"axis\">";
    for tick in 0..=TICKS {
        let at = (end_ns - start_ns) as f64 * f64::from(tick) / f64::from(TICKS);
        let _ = write!(out, "<span>{} us</span>", number(at / 1e3));
    }
    *out += "</div></div></div><div id=\"tip\"></div>\n";
}

const PACKET: &str = "#5a9bd4";
const CHUNK: &str = "#1f4e79";
const FILE: &str = "#b5651d";

impl<'a> Picture<'a> {
    fn of(all: &'a [Records], (start_ns, end_ns): (u64, u64)) -> Picture<'a> {
        let links = Links::of(all);
        let (mut rows, mut ranks, mut top) = (Vec::new(), Vec::new(), GAP);
        for rank in all {
            ranks.push((rank.rank, top + RANK / 2));
            let (bars_of_rank, left_out) = longest(calls(rank), (start_ns, end_ns));
            let name = format!("rank {}", rank.rank);
            rows.push(Row { name, top, height: RANK, bars: bars_of_rank, left_out });
            top += RANK + GAP;
            let (bars_of_files, left_out) = longest(on_files(rank), (start_ns, end_ns));
            if !bars_of_files.is_empty() {
                rows.push(Row { name: "files".into(), top, height: RAIL, bars: bars_of_files, left_out });
                top += RAIL + GAP;
            }
            let carried = bars(rank, &links);
            for (place, rail) in carried.rails().iter().enumerate() {
                let (bars, left_out) = longest(on_rail(&carried, place), (start_ns, end_ns));
                if bars.is_empty() {
                    continue;
                }
                rows.push(Row { name: rail.clone(), top, height: RAIL, bars, left_out });
                top += RAIL + GAP;
            }
            top += RANK_GAP;
        }
        Picture { rows, ranks, height: top, start_ns, end_ns }
    }

    /// Returns a sentence for each row of which not all bars are drawn.
    fn left_out(&self) -> Vec<String> {
        let rows = self.rows.iter().filter(|row| row.left_out > 0);
        rows.map(|row| {
            let count = row.left_out + row.bars.len();
            format!("Of {count} bars of {} the {BARS} longest are drawn.", escaped(&row.name))
        })
        .collect()
    }

    /// Time since the beginning of the picture, not beyond its ends.
    fn since_ns(&self, at_ns: u64) -> u64 {
        at_ns.clamp(self.start_ns, self.end_ns) - self.start_ns
    }

    fn x(&self, at_ns: u64) -> f64 {
        WIDTH * self.since_ns(at_ns) as f64 / (self.end_ns - self.start_ns) as f64
    }

    /// The middle of a rank's row; none: its trace is not here.
    fn y(&self, rank: u32) -> Option<u32> {
        self.ranks.iter().find(|(number, _)| *number == rank).map(|(_, y)| *y)
    }

    fn draw(&self, out: &mut String, lines: &[&Message]) {
        let (duration_ns, height) = (self.end_ns - self.start_ns, self.height);
        let _ = writeln!(
            out,
            "<svg id=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" height=\"{height}\" data-ns=\"{duration_ns}\" \
             preserveAspectRatio=\"none\" xmlns=\"http://www.w3.org/2000/svg\">"
        );
        // Nothing would be seen of a narrower bar on a wide screen.
        let least = WIDTH / 4_000.0;
        for (row, bar) in self.rows.iter().flat_map(|row| row.bars.iter().map(move |bar| (row, bar))) {
            let (left, right) = (self.x(bar.start_ns), self.x(bar.end_ns));
            let (width, top, height) = ((right - left).max(least), row.top, row.height);
            let (fill, what, took) = (&bar.fill, escaped(&bar.what), us(bar.end_ns - bar.start_ns));
            let began = us(self.since_ns(bar.start_ns));
            let _ = writeln!(
                out,
                "<rect x=\"{left:.3}\" y=\"{top}\" width=\"{width:.3}\" height=\"{height}\" fill=\"{fill}\">\
                 <title>{what}: from {began} us on, {took} us long</title></rect>"
            );
        }
        for message in lines {
            let (Some(from), Some(to)) = (self.y(message.from), self.y(message.to)) else { continue };
            let arrived_ns = message.arrived_ns.unwrap_or(message.sent_ns);
            let (left, right) = (self.x(message.sent_ns), self.x(arrived_ns));
            let Message { from: sender, to: receiver, tag, protocol, .. } = message;
            let (len, protocol) = (bytes(message.len), escaped(protocol));
            let took = us(arrived_ns.saturating_sub(message.sent_ns));
            let _ = writeln!(
                out,
                "<line x1=\"{left:.3}\" y1=\"{from}\" x2=\"{right:.3}\" y2=\"{to}\"><title>{len} from rank \
                 {sender} to rank {receiver}, tag {tag}: {protocol}, {took} us</title></line>"
            );
        }
        *out += "</svg>";
    }
}

/// Returns the calls of the first thread of a rank.
fn calls(rank: &Records) -> Vec<Bar<'_>> {
    let list = threads(rank).into_iter().next().map_or_else(Vec::new, |(_, list)| list);
    let bar = |stretch: super::states::Stretch<'_>| Bar {
        start_ns: stretch.start_ns,
        end_ns: stretch.end_ns.max(stretch.start_ns),
        fill: colour(stretch.state),
        what: stretch.call.map_or("computing".into(), |call| call.call.clone().into()),
    };
    list.into_iter().map(bar).collect()
}

/// Returns the accesses of files that a rank made by system calls or copies. Those by owners are messages,
/// which the rails' rows show.
fn on_files(rank: &Records) -> Vec<Bar<'_>> {
    const BY_ITSELF: [&str; 3] = ["directly", "all ranks, directly", "a region, by its owner"];
    let is_own = |access: &&Access| BY_ITSELF.contains(&&*access.way);
    let bar = |access: &Access| Bar {
        start_ns: access.at_ns,
        end_ns: access.until_ns.max(access.at_ns),
        fill: FILE.into(),
        what: format!("{} of {}, {}", access.access, bytes(access.len), access.way).into(),
    };
    rank.accesses.iter().filter(is_own).map(bar).collect()
}

fn on_rail(carried: &Bars, rail: usize) -> Vec<Bar<'static>> {
    let bar = |bar: &super::bars::Bar| {
        let (kind, fill) = if bar.is_chunk { ("chunk", CHUNK) } else { ("packet", PACKET) };
        let what = format!("{kind} of {}", bytes(bar.len)).into();
        Bar { start_ns: bar.start_ns, end_ns: bar.end_ns, fill: fill.into(), what }
    };
    carried.of(rail).map(bar).collect()
}

/// Those that are within a time and last longest, and the number of those that are too many.
fn longest(mut bars: Vec<Bar<'_>>, (start_ns, end_ns): (u64, u64)) -> (Vec<Bar<'_>>, usize) {
    bars.retain(|bar| bar.end_ns >= start_ns && bar.start_ns <= end_ns);
    bars.sort_by_key(|bar| std::cmp::Reverse(bar.end_ns - bar.start_ns));
    let left_out = bars.len().saturating_sub(BARS);
    bars.truncate(BARS);
    (bars, left_out)
}

fn colour(state: State) -> String {
    let [red, green, blue] = state.colour();
    format!("rgb({red},{green},{blue})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_accesses_of_files_that_a_rank_made_by_itself() {
        let line = |at_ns: u64, way: &str| {
            format!(
                "{{\"at_ns\":{at_ns},\"access\":\"write\",\"file\":\"/x\",\"way\":\"{way}\",\"owners\":[0],\
                 \"pieces\":2,\"len\":10,\"predicted_ns\":50,\"until_ns\":{}}}\n",
                at_ns + 70
            )
        };
        let ways = ["by owners", "directly", "all ranks, by owners", "a region, by its owner"];
        let text: String = (0..).zip(ways).map(|(place, way)| line(100 * place, way)).collect();
        let all = ["", &text].map(|text| Records::parse("t.0".into(), text).expect("a trace"));
        let picture = Picture::of(&all, (0, 1_000));
        let rows: Vec<&str> = picture.rows.iter().map(|row| &*row.name).collect();
        assert_eq!(rows, ["rank 0", "rank 0", "files"]);
        let shown: Vec<&str> = picture.rows[2].bars.iter().map(|bar| &*bar.what).collect();
        assert_eq!(shown, ["write of 10 B, directly", "write of 10 B, a region, by its owner"]);
    }
}
