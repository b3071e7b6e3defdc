//! Profiles for people: tables, pictures, and what programs get.

mod in_force;
mod picture;
mod table;

use newmadeleine::engine::{Method, Pair, Profile, Sample};
use newmadeleine::sampling::{Origin, ProfileInfo};
use serde::Serialize;

pub(crate) use in_force::InForce;
pub(crate) use picture::draw;
pub(crate) use table::{hand_offs, in_force, learnt, origins, samples, thresholds};

/// A profile as an object.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    rail: String,
    distance: &'static str,
    /// What the profile is of.
    key: String,
    /// `measured`, `cache`, `shipped` or `nominal`.
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(flatten)]
    profile: Option<Figures>,
}

/// What a profile says.
#[derive(Debug, Serialize)]
struct Figures {
    when: String,
    how: String,
    /// Why it is provisional.
    #[serde(skip_serializing_if = "Option::is_none")]
    provisional: Option<String>,
    latency_us: f64,
    mb_per_s: f64,
    /// Bytes; none: never, or always, as the name says.
    thresholds: Option<Thresholds>,
    /// Handing work from a core to another one, for each kind of pair that was measured.
    hand_offs: Vec<HandOff>,
    samples: Vec<Line>,
    /// What the driver has learnt for its own choices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    learnt: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Thresholds {
    in_place_from: Option<u64>,
    rendezvous_from: u64,
    pushed_from: Option<u64>,
    read_from: Option<u64>,
    read_below: Option<u64>,
    together_up_to: Option<u64>,
    blocks_in_place_from: Option<u64>,
    chunks_from: u64,
}

impl Thresholds {
    fn of(thresholds: &newmadeleine::engine::Thresholds) -> Thresholds {
        let some = |value: u64| Some(value).filter(|&value| value != u64::MAX);
        Thresholds {
            in_place_from: some(thresholds.in_place_min),
            rendezvous_from: thresholds.rendezvous_min,
            pushed_from: some(thresholds.push_min),
            read_from: some(thresholds.read_min),
            read_below: some(thresholds.read_max),
            together_up_to: some(thresholds.aggregate_max),
            blocks_in_place_from: some(thresholds.block_min),
            chunks_from: thresholds.chunk_min,
        }
    }
}

#[derive(Debug, Serialize)]
struct HandOff {
    pair: &'static str,
    us: f64,
}

#[derive(Debug, Serialize)]
struct Line {
    method: &'static str,
    bytes: u64,
    us: f64,
    lower_us: f64,
    upper_us: f64,
    count: u32,
}

impl Entry {
    pub(crate) fn of(info: &ProfileInfo) -> Entry {
        let file = match &info.known {
            Some((_, Origin::Cache(path) | Origin::Shipped(path))) => Some(path.display().to_string()),
            _ => None,
        };
        Entry {
            rail: info.rail.clone(),
            distance: info.key.distance.name(),
            key: info.key.to_string(),
            origin: origin(info),
            file,
            profile: info.known.as_ref().map(|(profile, _)| figures(profile)),
        }
    }
}

/// Where the figures come from, in a word.
fn origin(info: &ProfileInfo) -> &'static str {
    match &info.known {
        Some((_, Origin::Measured)) => "measured",
        Some((_, Origin::Cache(_))) => "cache",
        Some((_, Origin::Shipped(_))) => "shipped",
        None => "nominal",
    }
}

/// All samples, by method.
fn all(profile: &Profile) -> impl Iterator<Item = (Method, &Sample)> {
    Method::ALL.into_iter().flat_map(|method| profile.samples(method).iter().map(move |s| (method, s)))
}

fn figures(profile: &Profile) -> Figures {
    let line = |(method, sample): (Method, &Sample)| Line {
        method: method.name(),
        bytes: sample.len,
        us: us(sample.ns),
        lower_us: us(sample.low_ns),
        upper_us: us(sample.high_ns),
        count: sample.count,
    };
    let thresholds = profile.thresholds().map(Thresholds::of);
    Figures {
        when: profile.provenance().when.clone(),
        how: profile.provenance().how.clone(),
        provisional: profile.provenance().doubt.as_ref().map(|doubt| doubt.why.clone()),
        latency_us: us(profile.eager().ns(1)),
        mb_per_s: profile.body().bandwidth() as f64 / 1e6,
        thresholds,
        hand_offs: measured_hand_offs(profile)
            .map(|(pair, ns)| HandOff { pair: pair.name(), us: us(ns) })
            .collect(),
        samples: all(profile).map(line).collect(),
        learnt: profile.learnt().to_vec(),
    }
}

/// Hand-offs in nanoseconds, by how near the cores are to each other.
fn measured_hand_offs(profile: &Profile) -> impl Iterator<Item = (Pair, u64)> {
    let first = |pair| profile.samples(Method::HandOff(pair)).first();
    Pair::ALL.into_iter().filter_map(move |pair| Some((pair, first(pair)?.ns)))
}

pub(crate) fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
