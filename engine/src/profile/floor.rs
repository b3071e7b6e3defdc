//! Selects the visit of a point that counts: the fastest one that is not faster than the rail can be.

use super::sample::{Method, Sample};

/// A measured point: a method and a size.
pub(super) type Point = (Method, u64);

/// A visit is plausible if its bytes took at least this fraction of the time that they take in the longest
/// message. Caches make middle sizes somewhat faster; a burst is much faster.
const PLAUSIBLE: f64 = 0.6;
/// Visits of a point agree if they differ by at most this factor: on a quiet machine times differ by less,
/// and under load by much more.
const AGREEMENT: f64 = 1.25;

/// Lower bounds of times on the wire.
pub(super) struct Floor {
    /// Nanoseconds per byte at the bandwidth of the longest message.
    pub(super) longest: f64,
    /// Nanoseconds per byte at the rate to which the rail is limited; zero: no limit is known.
    pub(super) limit: f64,
}

impl Floor {
    /// Returns the visits of a point, fastest first, that are not faster than the rail; all if all are
    /// faster.
    pub(super) fn plausible<'a>(&self, len: u64, visits: &'a [Sample]) -> &'a [Sample] {
        let least = len as f64 * self.longest * PLAUSIBLE;
        let first = visits.iter().position(|visit| visit.ns as f64 >= least).unwrap_or(0);
        &visits[first..]
    }

    /// Whether another visit confirms the one that counts; `None` if there was only one.
    pub(super) fn agree(&self, len: u64, visits: &[Sample]) -> Option<bool> {
        let plausible = self.plausible(len, visits);
        // If all others were too fast, the remaining one may well be too slow.
        let agrees = |second: &Sample| second.ns as f64 <= plausible[0].ns as f64 * AGREEMENT;
        (visits.len() > 1).then(|| plausible.get(1).is_some_and(agrees))
    }

    /// Returns the least time of a message by the known limit of the rail. A sender that had no core for a
    /// while may send more at once than its warm-up has used up, by one method and not by the other.
    fn limited_ns(&self, method: Method, len: u64) -> u64 {
        let bytes = match method {
            Method::Pair | Method::Aggregate => 2 * len,
            _ => len,
        };
        let is_limited = !is_local(method) && !method.has_blocks();
        if is_limited { (bytes as f64 * self.limit) as u64 } else { 0 }
    }

    /// Returns the sample that counts. If all visits were part of a burst that a traffic shaper let pass,
    /// which following messages cannot repeat, its time is computed from the bandwidth of the longest
    /// message.
    pub(super) fn believed(&self, (method, len): Point, visits: &[Sample]) -> Option<Sample> {
        let sample = *self.plausible(len, visits).first()?;
        let sustained_ns = (len as f64 * self.longest) as u64;
        let is_burst = !is_local(method) && (sample.ns as f64) < sustained_ns as f64 * PLAUSIBLE;
        // The measured value is kept in the spread.
        let ns = if is_burst { sustained_ns } else { sample.ns.max(self.limited_ns(method, len)) };
        // So is the time of another visit; an unconfirmed one may be off by as much as visits differ.
        let confirmed_ns = match self.plausible(len, visits) {
            [_, second, ..] => second.ns,
            _ => (ns as f64 * AGREEMENT) as u64,
        };
        Some(Sample { ns, high_ns: sample.high_ns.max(ns).max(confirmed_ns), ..sample })
    }
}

/// Whether another visit confirms the fastest one.
pub(super) fn confirmed(visits: &[Sample]) -> bool {
    matches!(visits, [first, second, ..] if second.ns as f64 <= first.ns as f64 * AGREEMENT)
}

/// Whether the measurement involves only this host.
pub(super) fn is_local(method: Method) -> bool {
    matches!(method, Method::Post | Method::Memcpy | Method::HandOff(_))
}
