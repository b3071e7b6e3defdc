//! The profile from which learning starts: a measured one, or the line through nominal figures.

use super::curve::Curve;
use super::measured::{Profile, Provenance};
use super::sample::{Method, Sample};
use super::threshold::UNEXPECTED_MAX;
use alloc::vec::Vec;

/// Shortest message that is sent by rendezvous; below it rendezvous never pays.
pub(super) const BODY_FROM: u64 = 1 << 10;
/// Longest message on the line through nominal figures.
const NOMINAL_LEN_MAX: u64 = 64 << 20;

/// A method of carrying bytes over one rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// In a packet, copied.
    Copy,
    /// In a packet, in place.
    InPlace,
    /// In a chunk.
    Body,
}

impl Way {
    pub(super) const ALL: [Way; 3] = [Way::Copy, Way::InPlace, Way::Body];
}

/// The profile that factors are relative to.
#[derive(Debug)]
pub(super) struct Base {
    copy: Curve,
    in_place: Curve,
    body: Curve,
    /// See [`Profile::handshake_ns`].
    pub(super) handshake_ns: u64,
    /// Samples of the profile, or points on the line through its nominal figures.
    pub(super) samples: Vec<(Method, Sample)>,
    pub(super) provenance: Provenance,
    pub(super) is_measured: bool,
}

impl Base {
    pub(super) fn of(profile: &Profile, in_place_min: u64, pushes: bool) -> Base {
        let provenance = profile.provenance().clone();
        let is_measured = profile.thresholds().is_some();
        let samples: Vec<(Method, Sample)> = match is_measured {
            true => Method::ALL
                .into_iter()
                .flat_map(|method| profile.samples(method).iter().map(move |sample| (method, *sample)))
                .collect(),
            false => nominal(profile, in_place_min, pushes),
        };
        let in_place = samples.iter().filter(|(method, _)| *method == Method::InPlace);
        let in_place = Curve::through(in_place.map(|(_, sample)| (sample.len, sample.ns)));
        let copy = profile.copied().clone();
        Base {
            in_place: in_place.unwrap_or_else(|| copy.clone()),
            copy,
            body: profile.body().clone(),
            handshake_ns: profile.handshake_ns(),
            samples,
            provenance,
            is_measured,
        }
    }

    /// Returns the nanoseconds per further byte of a long transfer.
    pub(super) fn ns_per_byte(&self) -> f64 {
        self.body.last_ns_per_byte()
    }

    /// Returns the nanoseconds that `len` bytes take.
    pub(super) fn ns(&self, way: Way, len: u64) -> f64 {
        let curve = match way {
            Way::Copy => &self.copy,
            Way::InPlace => &self.in_place,
            Way::Body => &self.body,
        };
        curve.ns(len) as f64
    }
}

/// Returns a sample of an exactly known time.
pub(super) fn exactly(len: u64, ns: u64) -> Sample {
    Sample { len, ns, low_ns: ns, high_ns: ns, count: 0 }
}

/// Returns samples on the line through nominal figures. Sending in place is assumed to be better from
/// `in_place_min` on.
fn nominal(profile: &Profile, in_place_min: u64, pushes: bool) -> Vec<(Method, Sample)> {
    let mut samples = Vec::new();
    let lens = (0..u64::BITS).flat_map(|bits| [1 << bits, (1 << bits) + (1 << bits >> 1)]);
    for len in lens.take_while(|&len| len <= NOMINAL_LEN_MAX) {
        let ns = profile.eager().ns(len);
        if len <= UNEXPECTED_MAX {
            let in_place_ns = if len < in_place_min { ns + ns / 16 } else { ns - ns / 16 };
            samples.push((Method::Copy, exactly(len, ns)));
            samples.push((Method::InPlace, exactly(len, in_place_ns)));
        }
        if len >= BODY_FROM {
            samples.push((Method::Rendezvous, exactly(len, profile.rendezvous_ns(len))));
            let is_whole = pushes && len <= UNEXPECTED_MAX;
            samples.extend(is_whole.then(|| (Method::Pushed, exactly(len, profile.body().ns(len)))));
        }
    }
    samples
}
