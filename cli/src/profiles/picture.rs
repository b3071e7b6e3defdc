//! Profiles as pictures, as figures 4 to 18 of P4: time and bandwidth of each method over the size, with the
//! sizes marked at which another method becomes the better one.

use newmadeleine::engine::{Method, Profile};
use newmadeleine::sampling::ProfileInfo;
use nmad_bench::plot::{Mark, Role, Series, bandwidth_svg_with, latency_svg_with};
use nmad_bench::stats::bytes;
use std::path::{Path, PathBuf};

use super::us;

/// One picture: the two methods compared, and where their curves cross.
struct Figure {
    name: &'static str,
    title: &'static str,
    methods: &'static [Method],
    threshold: fn(&Profile) -> Option<u64>,
    /// What changes there.
    change: &'static str,
}

const FIGURES: [Figure; 3] = [
    Figure {
        name: "in-place",
        title: "copied or in place",
        methods: &[Method::Copy, Method::InPlace],
        threshold: |profile| Some(profile.thresholds()?.in_place_min),
        change: "copied below, in place from here on",
    },
    Figure {
        name: "rendezvous",
        title: "eager or rendezvous",
        methods: &[Method::Copy, Method::InPlace, Method::Rendezvous, Method::Pushed],
        threshold: |profile| Some(profile.thresholds()?.rendezvous_min),
        change: "eager below, rendezvous from here on",
    },
    Figure {
        name: "aggregation",
        title: "two packets or one",
        methods: &[Method::Pair, Method::Aggregate],
        threshold: |profile| Some(profile.thresholds()?.aggregate_max),
        change: "two messages in one packet up to here, two packets above",
    },
];

/// Draws a profile into files of `folder`, and tells which.
pub(crate) fn draw(folder: &Path, info: &ProfileInfo, profile: &Profile) -> Result<Vec<PathBuf>, String> {
    std::fs::create_dir_all(folder)
        .map_err(|error| format!("cannot make the folder {}: {error}", folder.display()))?;
    let rail = format!("{} {}", info.rail, info.key.distance.name()).replace(['/', ' '], "-");
    let mut files = Vec::new();
    for figure in &FIGURES {
        let title = format!("{}, {}: {}", info.rail, info.key.distance.name(), figure.title);
        let marks = marks(figure, profile);
        let svg = latency_svg_with(&title, &series(figure.methods, profile, us_of), &marks);
        files.push(write(folder, &format!("{rail}-{}.svg", figure.name), svg)?);
    }
    let title = format!("{}, {}: bandwidth", info.rail, info.key.distance.name());
    let marks = marks(&FIGURES[1], profile);
    let svg = bandwidth_svg_with(&title, &series(FIGURES[1].methods, profile, rate_of), &marks);
    files.push(write(folder, &format!("{rail}-bandwidth.svg"), svg)?);
    Ok(files)
}

fn write(
    folder: &Path,
    name: &str,
    svg: Result<String, nmad_bench::plot::PlotError>,
) -> Result<PathBuf, String> {
    let path = folder.join(name);
    let svg = svg.map_err(|error| error.to_string())?;
    nmad_words::file::write(&path, svg)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(path)
}

fn us_of(_: u64, ns: u64) -> f64 {
    us(ns)
}

fn rate_of(len: u64, ns: u64) -> f64 {
    len as f64 * 1e3 / ns as f64
}

fn series(methods: &[Method], profile: &Profile, value: fn(u64, u64) -> f64) -> Vec<Series> {
    let one = |method: &Method| Series {
        label: method.name().into(),
        role: Role::Plain,
        points: profile.samples(*method).iter().map(|s| (s.len, value(s.len, s.ns)).into()).collect(),
    };
    methods.iter().map(one).filter(|series| !series.points.is_empty()).collect()
}

/// The crossing, if there is one within what was measured.
fn marks(figure: &Figure, profile: &Profile) -> Vec<Mark> {
    let longest = |method: &Method| profile.samples(*method).last().map_or(0, |sample| sample.len);
    let longest = figure.methods.iter().map(longest).max().unwrap_or(0);
    let at = (figure.threshold)(profile).filter(|&at| at > 0 && at <= longest);
    let mark = |len| Mark { len, label: format!("{}: {}", bytes(len), figure.change) };
    at.map(mark).into_iter().collect()
}
