//! Online correction of a rail's forecast by completed transfers (P4's future work).
//!
//! The observed time is the *service* time: from when the rail was free for a transfer to when the peer is
//! known to have the data. Time in a queue is excluded, or load would be counted twice. One number is
//! corrected, the load: the factor by which transfers take longer now than the profile says. It is a median
//! of the last half second, and it moves only when it lies outside of the range in which that median is known
//! ([`Span`]), so an outlier has no effect; each observation moves it by a bounded step, or to one, if
//! the median is near one; and it stays within bounds. If the last few observations contradict it
//! clearly, the rail has changed, and older ones are dropped. Without observations the load decays
//! towards one, so that the rail is tried again now and then: otherwise a rail that was slow once would
//! never carry the transfers that show it is fast again.
//!
//! **Where the times come from.** A kernel socket reports a chunk as sent when it has buffered it, which
//! says nothing about the network. So if several rails share messages the receiver acknowledges every 48
//! KiB on the rail on which they arrived, and the acknowledgement ends the service time. This time includes
//! the way back and the delay until the receiver polled; for transfers that follow each other both cancel
//! out. With one rail nothing is split and nothing is observed. Traffic to other peers over the same rail,
//! and a receiver that does not poll for long, count as load.

use crate::clock::{Duration, Instant};
use crate::profile::estimate::span::{SPAN, Span};

/// Transfers are added up until their observed or expected time reaches this: a late acknowledgement makes
/// one transfer seem slow and the next one fast.
const TOGETHER_NS: u64 = 2_000_000;
/// The load moves when it is this many standard errors away from the median. `nmad sim --golden decisions`:
/// half of it has a regret of 10.3 % instead of 9.6 and 6 false switches instead of 4, twice 9.8 % and 4.
const SURE: f64 = 0.5;
/// The rail has changed if the median of the last `LAST` observations is `CLEAR` standard errors away
/// from the load: 22 of 24 are slower, or faster. By chance that happens once in 28,000 times. It decides
/// the recorded jobs alike with twice as many observations, and with three or five standard errors; half
/// as many have 6 false switches. It makes changes of a quiet rail known sooner than the median would be.
const LAST: usize = 24;
const CLEAR: f64 = 4.0;
/// Lower bounds of the load. A transfer that is faster than on the quiet rail that was measured may be a
/// burst that a traffic shaper lets pass. Nominal figures may be far too low, and so may a profile that was
/// measured under disturbance.
const LOAD_MIN_MEASURED: f64 = 1.0;
const LOAD_MIN_UNSURE: f64 = 0.25;
/// A measured profile is too slow if the last [`LAST`] observations show a load below this, at [`CLEAR`]
/// standard errors, as for a change of the rail. Noise cannot cause that, since it only lengthens times,
/// nor can a burst, which is shorter than half of an observation (2 ms or more). With 0.9, the recorded
/// job whose receiver computes has a regret of 3.7 % instead of 1.5, since each of its messages begins
/// with a burst; with a third, a rail that was sampled at half of its rate keeps its profile
/// (`sim/tests/all/adapt.rs`).
const TOO_SLOW: f64 = 1.0 / 1.5;
/// Number of observations whose error is published.
const ERRORS: usize = 64;
/// An observation moves the load by at most this factor.
const STEP: f64 = 1.4;
/// If another flow keeps the queue of a rail full, a few bytes take as long as many, and only a load of
/// some hundreds shows that the rail is useless.
const LOAD_MAX: f64 = 1024.0;
/// Loads in this range count as one: such a difference is noise and would change splits for no gain.
const NEGLIGIBLE: core::ops::Range<f64> = 0.9..1.1;
/// After this time without an observation, half of the deviation of the load from one is dropped. With a
/// tenth, a program that pauses forgets between its messages what it has seen of a shared rail; half and
/// twice decide the recorded jobs alike.
const DECAY_AFTER: Duration = Duration::from_ms(1_000);

/// Accuracy of the predictions for a rail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// Observations since the start; each covers two milliseconds of transfers or more.
    pub count: u64,
    /// Median of the last relative errors, 0.05 for 5 percent.
    pub median: f64,
    /// 95th percentile of the last relative errors.
    pub p95: f64,
    /// Time that transfers take now, relative to the profile.
    pub load: f64,
}

/// Observations of a rail to one peer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Correction {
    /// Ratios of observed to expected time, with the expected time as weight.
    ratios: Span,
    errors: [f32; ERRORS],
    count: u64,
    last: Instant,
    /// When a transfer that followed another one was last observed.
    behind_at: Option<Instant>,
    /// Sums of observed and expected time of transfers that do not make a ratio yet.
    together: (u64, u64),
}

impl Default for Correction {
    fn default() -> Self {
        let (ratios, errors) = (Span::default(), [0.0; ERRORS]);
        let (last, behind_at) = (Instant::default(), None);
        Correction { ratios, errors, count: 0, last, behind_at, together: (0, 0) }
    }
}

impl Correction {
    /// Adds a transfer that took `observed_ns` and would have taken `expected_ns` on a quiet rail; returns
    /// the new load. `is_sure`: the profile was measured without disturbance. A transfer on an `idle` rail
    /// counts only if none lately followed another one: its time includes latencies, and the delay until the
    /// receiver polled.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        (observed_ns, expected_ns): (u64, u64),
        load: f64,
        (is_sure, idle): (bool, bool),
    ) -> f64 {
        self.last = now;
        if !idle {
            self.behind_at = Some(now);
        } else if self.behind_at.is_some_and(|at| now.since(at) < SPAN) {
            return load;
        }
        self.together.0 += observed_ns;
        self.together.1 += expected_ns;
        if self.together.0.max(self.together.1) < TOGETHER_NS {
            return load;
        }
        let (observed_ns, expected_ns) = core::mem::take(&mut self.together);
        let ratio = observed_ns.max(1) as f64 / expected_ns.max(1) as f64;
        let error = ratio / load - 1.0;
        self.errors[self.count as usize % ERRORS] = if error < 0.0 { -error } else { error } as f32;
        self.ratios.note(now, ratio, expected_ns.max(1) as f64);
        self.count += 1;
        let is_known = self.ratios.count() > LAST;
        let latest = is_known.then(|| self.ratios.median_within(LAST, CLEAR)).flatten();
        let is_faster = latest.is_some_and(|(_, to)| to < TOO_SLOW);
        let floor = if is_sure && !is_faster { LOAD_MIN_MEASURED } else { LOAD_MIN_UNSURE };
        let has_changed = |(from, to): (f64, f64)| {
            let same = from / NEGLIGIBLE.end..=f64::max(to, floor) * NEGLIGIBLE.end;
            !same.contains(&load)
        };
        if latest.is_some_and(has_changed) {
            self.ratios.keep(LAST);
        }
        let (from, to) = self.ratios.median_within(usize::MAX, SURE).unwrap_or((load, load));
        let moved = load.clamp(from, to).clamp(floor, LOAD_MAX);
        if NEGLIGIBLE.contains(&moved) { 1.0 } else { moved.clamp(load / STEP, load * STEP) }
    }

    /// Resets the ratios after a change of profile, which includes the past observations.
    pub(super) fn reset(&mut self) {
        (self.ratios, self.together, self.behind_at) = (Span::default(), (0, 0), None);
    }

    /// Returns the load after a time without observations.
    pub(super) fn decayed(&mut self, now: Instant, load: f64) -> f64 {
        if load == 1.0 || now.since(self.last) < DECAY_AFTER {
            return load;
        }
        self.last = now;
        let decayed = 1.0 + (load - 1.0) / 2.0;
        self.ratios = Span::default();
        if (0.98..1.02).contains(&decayed) { 1.0 } else { decayed }
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
    fn the_load_follows_transfers_and_ignores_an_outlier() {
        let (mut correction, mut load) = (Correction::default(), 1.0);
        for ms in 0..20 {
            load = correction.observe(at(ms), (4_000_000, 2_000_000), load, (true, false));
        }
        assert!((load - 2.0).abs() < 0.01, "{load}");
        load = correction.observe(at(21), (90_000_000, 2_000_000), load, (true, false));
        assert!((load - 2.0).abs() < 0.01, "{load}");
        let accuracy = correction.accuracy(load).unwrap();
        assert!(accuracy.count == 21 && accuracy.p95 >= 0.5 && accuracy.median <= 1.0, "{accuracy:?}");
    }

    #[test]
    fn the_load_of_an_unused_rail_decays() {
        let (mut correction, mut load) = (Correction::default(), 1.0);
        (0..30)
            .for_each(|ms| load = correction.observe(at(ms), (16_000_000, 2_000_000), load, (true, false)));
        assert!(load > 7.0);
        assert_eq!(correction.decayed(at(300), load), load, "not at once");
        for ms in (2_000..20_000).step_by(1_100) {
            load = correction.decayed(at(ms), load);
        }
        assert_eq!(load, 1.0);
        assert_eq!(Correction::default().accuracy(1.0), None, "nothing was observed");
    }
}
