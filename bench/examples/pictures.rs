//! One picture of each kind, from made-up figures, into the folder given: `pictures DIR`.
use std::error::Error;
use std::path::Path;
use std::{env, fs};

use nmad_bench::plot::{
    LaneGroup, Point, RailLane, Role, Series, Span, bandwidth_svg, latency_svg, timeline_svg,
};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = env::args().nth(1).ok_or("usage: pictures DIR")?;
    let write = |name: &str, svg: String| fs::write(Path::new(&dir).join(name), svg);
    let rates = [
        curve("auto", Role::Main, 800.0),
        curve("iso_split", Role::Plain, 670.0),
        curve("plain sockets, fast rail", Role::Baseline, 478.0),
    ];
    write("bandwidth.svg", bandwidth_svg("Bandwidth over 4 + 2.8 Gbit/s", &rates)?)?;
    let times = rates.map(|Series { label, role, points }| {
        let time = |Point { len, value, .. }| Point::from((len, len as f64 / value));
        Series { label, role, points: points.into_iter().map(time).collect() }
    });
    write("latency.svg", latency_svg("Half round trip", &times)?)?;
    let groups = [
        group("(a) each message on one rail", [&[(0, 4, "m1")], &[(0, 4, "m2")]]),
        group("(b) iso split", [&[(0, 2, "m1"), (2, 4, "m2")], &[(0, 2, "m1"), (2, 4, "m2")]]),
        split(),
    ];
    write("timeline.svg", timeline_svg("Two messages of 1 MiB over rails of 500 and 350 MB/s", &groups)?)?;
    Ok(())
}

/// A curve with a fixed cost of 10 us per message, and quartiles a tenth apart.
fn curve(label: &str, role: Role, rate: f64) -> Series {
    let value = |len: u64| len as f64 / (10.0 + len as f64 / rate);
    let lens = (8..=26).map(|power| 1u64 << power);
    let points = lens.map(|len| {
        let value = value(len);
        Point { len, value, quartiles: Some((0.95 * value, 1.05 * value)) }
    });
    Series { label: label.into(), role, points: points.collect() }
}

/// Spans in quarters of a message, on a rail of 500 MB/s and one of 350 MB/s.
fn group(label: &str, rails: [&[(u64, u64, &str)]; 2]) -> LaneGroup {
    let lanes = rails.iter().zip([500.0, 350.0]).map(|(spans, rate)| {
        let time = |quarters: u64| (quarters << 18) as f64 / rate;
        let span = |(from, to, name): &(u64, u64, &str)| Span {
            start_us: time(*from),
            end_us: time(*to),
            len: Some((to - from) << 18),
            label: (*name).into(),
        };
        RailLane { label: format!("{rate} MB/s"), spans: spans.iter().map(span).collect() }
    });
    LaneGroup { label: label.into(), rails: lanes.collect() }
}

/// Each message in parts that take equally long.
fn split() -> LaneGroup {
    let end = (1u64 << 20) as f64 / 850.0;
    let lane = |rate: f64| {
        let spans = ["m1", "m2"].iter().zip([0.0, end]).map(|(name, start)| Span {
            start_us: start,
            end_us: start + end,
            len: Some((rate * end) as u64),
            label: (*name).into(),
        });
        RailLane { label: format!("{rate} MB/s"), spans: spans.collect() }
    };
    LaneGroup { label: "(c) equal finish time".into(), rails: vec![lane(500.0), lane(350.0)] }
}
