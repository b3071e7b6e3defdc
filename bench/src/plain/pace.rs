//! Holding a socket back to a rate, in software: for machines on which the kernel may not shape a rail.
use std::time::Instant;

/// Bytes that may go at once after a pause, as with the kernel's token bucket.
const BURST: f64 = 128.0 * 1024.0;
/// Below this it waits on: a thousand tiny calls would cost more than the rate allows.
const LEAST: f64 = 16.0 * 1024.0;

/// A token bucket.
#[derive(Debug)]
pub(super) struct Pace {
    /// Bytes per second.
    rate: f64,
    /// Bytes that may go now; below zero after the end of a message.
    credit: f64,
    since: Instant,
}

impl Pace {
    /// A full bucket that is filled with `rate` bytes per second.
    pub fn new(rate: u64) -> Pace {
        Pace { rate: rate as f64, credit: BURST, since: Instant::now() }
    }

    /// How many bytes may go now.
    pub fn allowed(&mut self) -> usize {
        self.refill(Instant::now());
        if self.credit >= LEAST { self.credit as usize } else { 0 }
    }

    /// Charges `len` sent bytes to the credit.
    pub fn spend(&mut self, len: usize) {
        self.credit -= len as f64;
    }

    fn refill(&mut self, now: Instant) {
        let gained = now.duration_since(self.since).as_secs_f64() * self.rate;
        self.credit = (self.credit + gained).min(BURST);
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut pace = Pace::new(1_000_000_000);
        assert_eq!(pace.allowed(), 128 << 10);
        pace.spend(128 << 10);
        let later = pace.since + Duration::from_micros(50);
        pace.refill(later);
        assert!((pace.credit - 50_000.0).abs() < 1.0, "{}", pace.credit);
        pace.refill(later + Duration::from_secs(9));
        assert_eq!(pace.credit, BURST);
    }
}
