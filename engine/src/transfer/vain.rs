//! How long a lossy link has waited in vain for an acknowledgement.
//!
//! What is over is a network or a peer that is silent, not one of two processes that share their cores with
//! many others. So no clock is read but waits are added up, none as longer than it was meant to be: who gets
//! no core for seconds has neither sent anything in that time nor looked for an answer, and waited as long as
//! one timeout. Two that starve alike need as many turns each.

use crate::clock::{Duration, Instant};

/// A link is given up after this many timeouts in a row ...
const COUNT: u32 = 6;
/// ... that add up to this: a peer may be without a core for a while, too. That a process has ended is known
/// sooner, from its kernel or from the launcher.
const BOUND: Duration = Duration::from_ms(6000);

/// Waits since the peer last acknowledged something, or had something to acknowledge.
#[derive(Debug, Default)]
pub(crate) struct Vain {
    since: Instant,
    waited_ns: u64,
}

impl Vain {
    /// The link has just opened, is used again after it was idle, or the peer has acknowledged something new.
    #[inline]
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Vain { since: now, waited_ns: 0 };
    }

    /// A timeout has passed, now or while nobody looked.
    pub(crate) fn waited(&mut self, now: Instant, timeout: Duration) {
        self.waited_ns += now.since(self.since).as_ns().min(timeout.as_ns());
        self.since = now;
    }

    /// Whether the link counts as dead after so many timeouts in a row. With `alone` there is no other one to
    /// the peer, which is lost with it: twice as long.
    pub(crate) fn is_hopeless(&self, timeouts: u32, alone: bool) -> bool {
        timeouts >= COUNT && self.waited_ns > BOUND.as_ns() << u32::from(alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When a link is given up on which nothing is acknowledged, in milliseconds, and after how many
    /// timeouts, if whoever waits has a core again only `late_ms` after each timeout.
    fn over(late_ms: u64, alone: bool) -> (u64, u32) {
        let (mut vain, mut rtt) = (Vain::default(), crate::transfer::rtt::Rtt::default());
        let mut now = Instant::default() + Duration::from_ms(100);
        vain.restart(now);
        while !vain.is_hopeless(rtt.backoff(), alone) {
            now = now + rtt.timeout() + Duration::from_ms(late_ms);
            vain.waited(now, rtt.timeout());
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
