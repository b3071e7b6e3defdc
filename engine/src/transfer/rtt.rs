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
    /// A packet that was sent once was acknowledged after `sample` (Karn's rule: never of one sent again).
    /// Only this ends a back-off (RFC 6298, sections 3 and 5.7): were it over with any acknowledgement, a
    /// queue that has grown beyond the timeout would have everything sent twice, and nothing would end that.
    pub(crate) fn measured(&mut self, sample: Duration) {
        let sample = sample.as_ns();
        if self.smoothed == 0 {
            (self.smoothed, self.variation) = (sample.max(1), sample / 2);
        } else {
            self.variation = (3 * self.variation + self.smoothed.abs_diff(sample)) / 4;
            self.smoothed = (7 * self.smoothed + sample) / 8;
        }
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

    #[test]
    fn a_back_off_lasts_until_something_that_was_sent_once_has_arrived() {
        let mut rtt = Rtt::default();
        rtt.measured(Duration::from_us(1_000));
        let before = rtt.timeout();
        (0..3).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), Duration::from_ns(before.as_ns() * 8));
        rtt.measured(Duration::from_us(1_000));
        assert!(rtt.timeout() <= before && rtt.backoff() == 0);
    }
}
