//! Round-trip estimation of a lossy link and the timeout that follows from it (RFC 6298).
//!
//! The timeout doubles once per round of retransmissions. All orders that were sent before it doubled are
//! late by the previous timeout; it does not double again for each order that queues behind another one.
//! With 20 % loss few orders of many datagrams arrive whole, and doubling for each of them made 1 MiB take
//! ten seconds.

use crate::clock::{Duration, Instant};
use crate::profile::estimate::mean::Smoothed;

/// The timeout exceeds the smoothed round trip by at least this: the peer may delay an acknowledgement to
/// combine it with other traffic, or may wait for a core.
const MARGIN_MIN: Duration = Duration::from_us(300);
const RTO_MAX: Duration = Duration::from_ms(500);
/// Timeout before the first measurement.
const RTO_INITIAL: Duration = Duration::from_ms(10);

#[derive(Debug, Default)]
pub(crate) struct Rtt {
    sample: Smoothed,
    shortest: u64,
    backoff: u32,
    /// When the timeout last doubled, its value before, and the bytes that may still be retransmitted by
    /// that old value.
    since: Instant,
    before: Duration,
    allowed: u64,
}

impl Rtt {
    /// Adds a round trip sample: a packet was acknowledged `sample` after it was sent. A retransmitted
    /// packet gives no sample (Karn's rule), unless it is known which transmission was acknowledged.
    pub(crate) fn measured(&mut self, sample: Duration) {
        let sample = sample.as_ns();
        self.shortest = if self.sample.mean() == 0 { sample } else { self.shortest.min(sample) };
        self.sample.note(sample);
    }

    /// Resets the backoff: the peer acknowledged something new, so the path works.
    pub(crate) fn progress(&mut self) {
        self.backoff = 0;
    }

    /// Returns how long to wait for an acknowledgement. Over a queue of constant length the round trip does
    /// not vary, but the next one may still be twice as long: hence at least twice the smoothed round trip
    /// (RFC 8985, section 7.2).
    pub(crate) fn timeout(&self) -> Duration {
        let (smoothed, variation) = (self.sample.mean(), self.sample.deviation());
        let margin = (4 * variation).max(smoothed).max(MARGIN_MIN.as_ns());
        let base = if smoothed == 0 { RTO_INITIAL.as_ns() } else { smoothed + margin };
        Duration::from_ns((base << self.backoff.min(10)).min(RTO_MAX.as_ns()))
    }

    /// Returns when an order sent at `sent_at` has to be retransmitted.
    pub(crate) fn due_at(&self, sent_at: Instant) -> Instant {
        sent_at + if self.is_of_round(sent_at) { self.before } else { self.timeout() }
    }

    /// Whether an order sent at `sent_at` belongs to a round for which the timeout has already doubled.
    pub(crate) fn is_of_round(&self, sent_at: Instant) -> bool {
        self.backoff > 0 && self.allowed > 0 && sent_at < self.since
    }

    /// Doubles the timeout after it expired; `allowed` more bytes of the same round may be retransmitted by
    /// the old value.
    pub(crate) fn back_off(&mut self, now: Instant, allowed: u64) {
        (self.before, self.since, self.allowed) = (self.timeout(), now, allowed);
        self.backoff += 1;
    }

    /// The clock went back: the timeout has not doubled later than now.
    pub(crate) fn restart_timers(&mut self, now: Instant) {
        self.since = self.since.min(now);
    }

    /// Records that `len` more bytes of the round were retransmitted.
    pub(crate) fn spend(&mut self, len: u64) {
        self.allowed = self.allowed.saturating_sub(len);
    }

    /// Returns the number of timeouts that expired in a row.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// Returns the smoothed round trip plus four times its variation, and the shortest round trip; zero
    /// before the first measurement.
    pub(crate) fn usual(&self) -> (Duration, Duration) {
        let usual = self.sample.mean() + 4 * self.sample.deviation();
        (Duration::from_ns(usual), Duration::from_ns(self.shortest))
    }

    /// Returns the smoothed round trip; zero before the first measurement.
    pub(crate) fn smoothed(&self) -> Duration {
        Duration::from_ns(self.sample.mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_late_by_one_timeout_as_far_as_it_may_be_sent_again() {
        let (mut rtt, at) = (Rtt::default(), |ms: u64| Instant::default() + Duration::from_ms(ms));
        assert_eq!((rtt.due_at(at(1)), rtt.due_at(at(2))), (at(11), at(12)));
        rtt.back_off(at(11), 1000);
        assert!(rtt.is_of_round(at(2)) && !rtt.is_of_round(at(11)));
        assert_eq!(
            (rtt.due_at(at(2)), rtt.due_at(at(11))),
            (at(12), at(31)),
            "what was sent again has longer"
        );
        rtt.spend(600);
        assert_eq!(rtt.due_at(at(2)), at(12));
        rtt.spend(600);
        assert_eq!(rtt.due_at(at(2)), at(22), "no more of it, until the next round");
        rtt.back_off(at(22), 1000);
        assert_eq!((rtt.due_at(at(11)), rtt.due_at(at(22))), (at(31), at(62)));
        rtt.progress();
        assert_eq!(rtt.due_at(at(11)), at(21), "the way is free again");
    }

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
