//! Online correction: completed transfers say how a rail fares now (P4's future work).
//!
//! What counts is *service* time: from the moment the rail was free for a transfer to the moment the peer is
//! known to have it, never the time in a queue, or load would be counted twice. One number is corrected, the
//! load: what everything takes now relative to the profile. It is moved when most of the last few ratios of
//! observed to expected time lie on one side of it, so that an outlier moves nothing; each observation moves
//! it by a bounded step; and it stays within bounds. A rail that is not used for a while is forgiven bit by
//! bit, so that it is tried again now and then: otherwise a rail that was slow once would never get the
//! chance to show that it no longer is.
//!
//! **Where the times come from.** A kernel socket reports a chunk as sent when it has swallowed it, which
//! says nothing. So where several rails share messages the receiver acknowledges every 48 KiB on the rail on
//! which they came, and the arrival of the acknowledgement ends the service. It includes the way back and
//! the time until the receiver looked; between transfers that follow each other both cancel out. With one
//! rail nothing is shared out and nothing is observed. Traffic to other peers over the same rail, and a
//! receiver that does not look for long, count as load.

use crate::clock::{Duration, Instant};

/// Transfers are counted together until they have or should have taken this long: an acknowledgement that
/// comes late makes one transfer seem slow and the next one fast.
const TOGETHER_NS: u64 = 2_000_000;
/// Ratios of which most must agree.
const RATIOS: usize = 5;
/// Observations of which the error is published.
const ERRORS: usize = 64;
/// An observation moves the load by at most this factor.
const STEP: f64 = 1.4;
/// Where another flow keeps the queue of a rail full, a few bytes take as long as many, and only a load of
/// some hundreds says that the rail is of no use.
const LOAD_MAX: f64 = 1024.0;
/// Loads this close to one count as one: such a difference is noise, and moves shares for nothing.
const QUIET: core::ops::Range<f64> = 0.9..1.1;
/// Half of what a load is off its profile is forgiven after this long without an observation.
const FORGIVEN_AFTER: Duration = Duration::from_ms(100);

/// How well a rail is predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// Observations since the start; each is of about a millisecond of transfers.
    pub count: u64,
    /// Median of the relative errors of the last ones, 0.05 for 5 percent.
    pub median: f64,
    /// 95th percentile of the relative errors of the last ones.
    pub p95: f64,
    /// What everything takes now, relative to the profile.
    pub load: f64,
}

/// Observations of a rail to one peer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Correction {
    ratios: [f64; RATIOS],
    errors: [f32; ERRORS],
    count: u64,
    last: Instant,
    /// Observed and expected time of transfers that do not make a ratio yet.
    together: (u64, u64),
}

impl Default for Correction {
    fn default() -> Self {
        let (ratios, errors) = ([1.0; RATIOS], [0.0; ERRORS]);
        Correction { ratios, errors, count: 0, last: Instant::default(), together: (0, 0) }
    }
}

impl Correction {
    /// A transfer took `observed_ns`, on a quiet rail it would have taken `expected_ns`; the load after it,
    /// no lower than `floor`.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        (observed_ns, expected_ns): (u64, u64),
        load: f64,
        floor: f64,
    ) -> f64 {
        self.last = now;
        self.together.0 += observed_ns;
        self.together.1 += expected_ns;
        if self.together.0.max(self.together.1) < TOGETHER_NS {
            return load;
        }
        let (observed_ns, expected_ns) = core::mem::take(&mut self.together);
        let ratio = observed_ns.max(1) as f64 / expected_ns.max(1) as f64;
        let error = ratio / load - 1.0;
        self.errors[self.count as usize % ERRORS] = if error < 0.0 { -error } else { error } as f32;
        self.ratios[self.count as usize % RATIOS] = ratio;
        self.count += 1;
        let mut sorted = self.ratios;
        sorted.sort_unstable_by(f64::total_cmp);
        // What most of them agree on; between those the load stays where it is.
        let agreed = load.clamp(sorted[1], sorted[RATIOS - 2]).clamp(floor, LOAD_MAX);
        if QUIET.contains(&agreed) { 1.0 } else { agreed.clamp(load / STEP, load * STEP) }
    }

    /// The profile has become another one, with what was observed in it.
    pub(super) fn begin_anew(&mut self) {
        (self.ratios, self.together) = ([1.0; RATIOS], (0, 0));
    }

    /// The load after a time without observations.
    pub(super) fn relaxed(&mut self, now: Instant, load: f64) -> f64 {
        if load == 1.0 || now.since(self.last) < FORGIVEN_AFTER {
            return load;
        }
        self.last = now;
        let relaxed = 1.0 + (load - 1.0) / 2.0;
        self.ratios = [relaxed; RATIOS];
        if (0.98..1.02).contains(&relaxed) { 1.0 } else { relaxed }
    }

    pub(super) fn accuracy(&self, load: f64) -> Option<Accuracy> {
        let known = (self.count as usize).min(ERRORS);
        let mut errors = self.errors;
        let errors = &mut errors[..known];
        errors.sort_unstable_by(f32::total_cmp);
        let at = |percent: usize| errors.get((known.checked_sub(1)?) * percent / 100).map(|e| f64::from(*e));
        Some(Accuracy { count: self.count, median: at(50)?, p95: at(95)?, load })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn the_load_follows_what_is_observed_within_a_few_transfers_and_an_outlier_moves_it_not() {
        let (mut correction, mut load) = (Correction::default(), 1.0);
        for ms in 0..12 {
            load = correction.observe(at(ms), (4_000_000, 2_000_000), load, 1.0);
        }
        assert!((load - 2.0).abs() < 0.01, "{load}");
        load = correction.observe(at(13), (90_000_000, 2_000_000), load, 1.0);
        assert!((load - 2.0).abs() < 0.01, "{load}");
        let accuracy = correction.accuracy(load).unwrap();
        assert!(accuracy.count == 13 && accuracy.p95 >= 0.5 && accuracy.median <= 1.0, "{accuracy:?}");
    }

    #[test]
    fn an_unused_rail_is_forgiven() {
        let (mut correction, mut load) = (Correction::default(), 1.0);
        (0..20).for_each(|ms| load = correction.observe(at(ms), (16_000_000, 2_000_000), load, 1.0));
        assert!(load > 7.0);
        assert_eq!(correction.relaxed(at(30), load), load, "not at once");
        for ms in (200..2_000).step_by(110) {
            load = correction.relaxed(at(ms), load);
        }
        assert_eq!(load, 1.0);
        assert_eq!(Correction::default().accuracy(1.0), None, "nothing was observed");
    }
}
