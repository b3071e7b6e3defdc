//! Round-trip estimation of a lossy link and the timeout that follows from it (RFC 6298).

use crate::clock::Duration;

/// A timeout exceeds the smoothed round trip by at least this: acknowledgements may wait for company, and who
/// should answer for a core.
const MARGIN_MIN: Duration = Duration::from_us(300);
const RTO_MAX: Duration = Duration::from_ms(500);
/// Before the first measurement.
const RTO_INITIAL: Duration = Duration::from_ms(10);

#[derive(Debug, Default)]
pub(crate) struct Rtt {
    smoothed: u64,
    variation: u64,
    backoff: u32,
}

impl Rtt {
    /// A packet was acknowledged `sample` after it left. Of one that was sent again no sample may be taken
    /// (Karn's rule), unless it is known which time was answered.
    pub(crate) fn measured(&mut self, sample: Duration) {
        let sample = sample.as_ns();
        if self.smoothed == 0 {
            (self.smoothed, self.variation) = (sample.max(1), sample / 2);
        } else {
            self.variation = (3 * self.variation + self.smoothed.abs_diff(sample)) / 4;
            self.smoothed = (7 * self.smoothed + sample) / 8;
        }
    }

    /// The peer acknowledged something new: the path works, whatever was lost on it before.
    pub(crate) fn progress(&mut self) {
        self.backoff = 0;
    }

    /// How long to wait for an acknowledgement. Over a queue that is always as long nothing varies, and its
    /// next round trip may be as long again: hence twice the smoothed one at least (RFC 8985, section 7.2).
    pub(crate) fn timeout(&self) -> Duration {
        let margin = (4 * self.variation).max(self.smoothed).max(MARGIN_MIN.as_ns());
        let base = if self.smoothed == 0 { RTO_INITIAL.as_ns() } else { self.smoothed + margin };
        Duration::from_ns((base << self.backoff.min(10)).min(RTO_MAX.as_ns()))
    }

    /// A timeout has passed in vain.
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Timeouts in a row that passed in vain.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The smoothed round trip; zero before the first measurement.
    pub(crate) fn smoothed(&self) -> Duration {
        Duration::from_ns(self.smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_that_never_varied_may_double() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(), RTO_INITIAL);
        for (sample, timeout) in [(10, 310), (1_000, 2_000)] {
            (0..200).for_each(|_| rtt.measured(Duration::from_us(sample)));
            let found = rtt.timeout().as_ns() as f64 / 1e3;
            assert!((found / timeout as f64 - 1.0).abs() < 0.02, "{found} us after {sample} us");
        }
    }
}
