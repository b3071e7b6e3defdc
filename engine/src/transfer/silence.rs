//! Decides when a lossy link is dead because nothing was acknowledged.
//!
//! A link is dead if the network or the peer is silent, not if one of the two processes merely lacks a
//! core. Elapsed time cannot tell these apart, so waits are added up, and each counts at most as long as
//! its timeout: a process without a core for seconds has neither sent anything nor looked for an answer in
//! that time, and its wait counts as one timeout. Two processes that both lack cores need the same number
//! of timeouts.

use crate::clock::{Duration, Instant};

/// A link is dead after this many timeouts in a row ...
const COUNT: u32 = 6;
/// ... that add up to this: a peer may lack a core for a while, too. If a process has ended, its kernel or
/// the launcher reports it sooner.
const BOUND: Duration = Duration::from_ms(6000);

/// Waits since the peer last acknowledged something, or since nothing was in flight.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    since: Instant,
    waited_ns: u64,
}

impl Silence {
    /// Restarts the sum: the link has just opened, is used again after it was idle, or the peer has
    /// acknowledged something new.
    #[inline]
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Silence { since: now, waited_ns: 0 };
    }

    /// The clock went back: the wait has not begun later than now.
    pub(crate) fn restart_timers(&mut self, now: Instant) {
        self.since = self.since.min(now);
    }

    /// Adds a timeout that expired now, or earlier while the process had no core.
    pub(crate) fn waited(&mut self, now: Instant, timeout: Duration) {
        self.waited_ns += now.since(self.since).as_ns().min(timeout.as_ns());
        self.since = now;
    }

    /// Whether the link counts as dead after `timeouts` timeouts in a row. `alone`: the peer has no other
    /// link and would be lost with this one, so the bound is twice as long.
    pub(crate) fn is_timed_out(&self, timeouts: u32, alone: bool) -> bool {
        timeouts >= COUNT && self.waited_ns > BOUND.as_ns() << u32::from(alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns after how many milliseconds and timeouts a link without any acknowledgement counts as dead,
    /// if the process gets a core only `late_ms` after each timeout.
    fn over(late_ms: u64, alone: bool) -> (u64, u32) {
        let (mut silence, mut rtt) = (Silence::default(), crate::transfer::rtt::Rtt::default());
        let mut now = Instant::default() + Duration::from_ms(100);
        silence.restart(now);
        while !silence.is_timed_out(rtt.backoff(), alone) {
            now = now + rtt.timeout() + Duration::from_ms(late_ms);
            silence.waited(now, rtt.timeout());
            rtt.back_off(now, 0);
            assert!(rtt.backoff() < 1000, "endless");
        }
        (now.as_ns() / 1_000_000 - 100, rtt.backoff())
    }

    #[test]
    fn silence_is_over_in_time_and_the_last_link_later() {
        let ((ms, count), (alone_ms, _)) = (over(0, false), over(0, true));
        assert!((6_000..6_600).contains(&ms) && count >= COUNT, "{ms} ms, {count} timeouts");
        assert!((12_000..12_600).contains(&alone_ms), "{alone_ms} ms");
    }

    #[test]
    fn time_without_a_core_is_no_silence() {
        let (_, awake) = over(0, false);
        for late_ms in [1, 100, 3_000, 60_000] {
            assert_eq!(over(late_ms, false).1, awake, "as many timeouts, each late by {late_ms} ms");
        }
    }
}
