//! Round-trip estimation of a lossy link and the timeout that follows from it (RFC 6298).

use crate::clock::Duration;

/// Timeouts never fall below this: acknowledgements may wait for company, and who should answer for a core.
const RTO_MIN: Duration = Duration::from_us(300);
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

    /// How long to wait for an acknowledgement.
    pub(crate) fn timeout(&self) -> Duration {
        let base = if self.smoothed == 0 { RTO_INITIAL.as_ns() } else { self.smoothed + 4 * self.variation };
        let timeout = base.max(RTO_MIN.as_ns()) << self.backoff.min(10);
        Duration::from_ns(timeout.min(RTO_MAX.as_ns()))
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
