//! Selects the visit of a point that counts: the fastest one that is not faster than the rail can be.

use super::sample::{BLOCKS_LEN, Method, Sample};

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
    pub(super) fn plausible<'a>(&self, point: Point, visits: &'a [Sample]) -> &'a [Sample] {
        let least = bytes(point) as f64 * self.longest * PLAUSIBLE;
        let first = visits.iter().position(|visit| visit.ns as f64 >= least).unwrap_or(0);
        &visits[first..]
    }

    /// Whether another visit confirms the one that counts; `None` if there was only one.
    pub(super) fn agree(&self, point: Point, visits: &[Sample]) -> Option<bool> {
        let plausible = self.plausible(point, visits);
        // If all others were too fast, the remaining one may well be too slow.
        let agrees = |second: &Sample| second.ns as f64 <= plausible[0].ns as f64 * AGREEMENT;
        (visits.len() > 1).then(|| plausible.get(1).is_some_and(agrees))
    }

    /// Returns the sample that counts. If all visits were part of a burst that a traffic shaper let pass,
    /// which following messages cannot repeat, its time is computed from the bandwidth of the longest
    /// message. Nor is a message faster than the known limit of the rail: a sender that had no core for a
    /// while may send more at once than its warm-up has used up, by one method and not by the other.
    pub(super) fn believed(&self, point: Point, visits: &[Sample]) -> Option<Sample> {
        let sample = *self.plausible(point, visits).first()?;
        let sustained_ns = (bytes(point) as f64 * self.longest) as u64;
        let is_burst = (sample.ns as f64) < sustained_ns as f64 * PLAUSIBLE;
        let limited_ns = (bytes(point) as f64 * self.limit) as u64;
        // The measured value is kept in the spread.
        let ns = if is_burst { sustained_ns } else { sample.ns.max(limited_ns) };
        // So is the time of another visit; an unconfirmed one may be off by as much as visits differ.
        let confirmed_ns = match self.plausible(point, visits) {
            [_, second, ..] => second.ns,
            _ => (ns as f64 * AGREEMENT) as u64,
        };
        Some(Sample { ns, high_ns: sample.high_ns.max(ns).max(confirmed_ns), ..sample })
    }
}

/// Returns how many bytes a point has on the wire.
fn bytes((method, len): Point) -> u64 {
    match method {
        _ if is_local(method) => 0,
        _ if method.has_blocks() => BLOCKS_LEN,
        Method::Pair | Method::Aggregate => 2 * len,
        _ => len,
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
