//! Which visit of a point counts: the fastest one that is no faster than the rail.

use super::sample::{Method, Sample};

/// A method and a size.
pub(super) type Point = (Method, u64);

/// A visit is plausible if its bytes took at least this part of the time that they take in the longest one.
/// Caches make middle sizes somewhat faster; a burst is faster by far.
const PLAUSIBLE: f64 = 0.6;
/// Visits of a point that differ by more than this factor do not agree: from one time to the next a quiet
/// machine's times differ by less, and by more by far where something else wants the cores.
const AGREEMENT: f64 = 1.25;

/// The time that bytes take at the bandwidth of the longest message, in nanoseconds for each.
pub(super) struct Floor(pub(super) f64);

impl Floor {
    /// Those of the visits of a point, fastest first, that are no faster than the rail; all if all are.
    pub(super) fn plausible<'a>(&self, len: u64, visits: &'a [Sample]) -> &'a [Sample] {
        let least = len as f64 * self.0 * PLAUSIBLE;
        let first = visits.iter().position(|visit| visit.ns as f64 >= least).unwrap_or(0);
        &visits[first..]
    }

    /// Whether the visit that counts is confirmed by another one; none where there was only one.
    pub(super) fn agree(&self, len: u64, visits: &[Sample]) -> Option<bool> {
        let plausible = self.plausible(len, visits);
        // If all others were too fast, the one that is left may well be too slow.
        let agrees = |second: &Sample| second.ns as f64 <= plausible[0].ns as f64 * AGREEMENT;
        (visits.len() > 1).then(|| plausible.get(1).is_some_and(agrees))
    }

    /// The sample that counts. If all visits rode on what a shaper had saved up, which one message after the
    /// other uses up, it is what the bandwidth of the longest message makes of it.
    pub(super) fn believed(&self, (method, len): Point, visits: &[Sample]) -> Option<Sample> {
        let sample = *self.plausible(len, visits).first()?;
        let sustained_ns = (len as f64 * self.0) as u64;
        let is_burst = !is_local(method) && (sample.ns as f64) < sustained_ns as f64 * PLAUSIBLE;
        // The measured value stays as the spread.
        let ns = if is_burst { sustained_ns } else { sample.ns };
        // So does what another visit found; one that none confirms may be off by as much as visits differ.
        let confirmed_ns = match self.plausible(len, visits) {
            [_, second, ..] => second.ns,
            _ => (ns as f64 * AGREEMENT) as u64,
        };
        Some(Sample { ns, high_ns: sample.high_ns.max(ns).max(confirmed_ns), ..sample })
    }
}

/// Whether the other host has no part in it.
pub(super) fn is_local(method: Method) -> bool {
    matches!(method, Method::Memcpy | Method::HandOff(_))
}
