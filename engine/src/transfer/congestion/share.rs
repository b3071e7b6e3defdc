//! The default scheme: its window shares a path fairly with TCP and does not take every loss for
//! congestion.
//!
//! TCP Veno (Fu and Liew, IEEE JSAC 21(2), 2003) checks at a loss whether the path has a queue: if so, the
//! window is halved as in Reno; otherwise the loss was random and the window shrinks by a fifth. Veno
//! decides by the bytes queued; this scheme decides by the delay above the least round trip, since on a
//! cluster network delayed acknowledgements take more time than a few queued packets. Without a queue the
//! window grows in proportion to itself (Scalable TCP; Kelly, ACM CCR 33(2), 2003); with a queue it grows
//! by a segment per round trip, so that a TCP flow in the same queue gets its share.
//!
//! In a long queue without losses each flow gets the part of the rate that equals its part of the queue.
//! Other flows queue too different amounts for one fixed window: Linux limits a TCP flow in the queue of
//! its own interface to a few milliseconds (TCP small queues), to its buffer, or, with BBR, to one
//! millisecond. If the rail was measured its capacity is known, and capacity times delay is the length of
//! the whole queue (as Nimbus finds cross traffic: Goyal and others, SIGCOMM 2022). About half of that may
//! be in flight, whatever the other half is, and less of it in a longer queue ([`Share::most`]): several
//! flows of this kind then converge to equal parts, and a single one shortens the queue. Without a measured
//! capacity, bytes in flight times the delay stay below a bound ([`SHARE`]), which suits a gigabit per
//! second.

use super::{Congestion, HandledLosses, SEGMENT};
use crate::clock::{Duration, Instant};
use crate::profile::estimate::mean::Weight;

/// Window before the first acknowledgement: the size of two trains of datagrams.
const INITIAL: u64 = 128 << 10;
/// Smallest window: with less, acknowledgements do not keep arriving.
const LEAST: u64 = 16 << 10;
/// Largest window in a short queue or one of unknown length: the bytes in flight that the TCP rail's send
/// buffer allows.
const MOST: u64 = 704 << 10;
/// Largest window in a long queue of known length: as much as autotuned TCP flows.
const LARGEST: u64 = 4 << 20;
/// Growth per round trip without a queue, as a divisor of the window.
const GROWTH: u64 = 8;
/// A round trip longer than the least one by at most this is due to delayed acknowledgements and busy
/// cores, not to a queue.
const SLACK: Duration = Duration::from_us(250);
/// Bound of the bytes in flight times their queueing delay in nanoseconds. Measured: with about this value
/// a flow gets half of a rail of 1 Gbit/s beside a TCP flow with default buffers (`nmad bench fairness`).
const SHARE: u64 = (304 << 10) * 8_000_000;
/// This flow's part of a queue of known length, and the decrease of the part per nanosecond of queueing
/// delay. Two flows meet at half of the queue after 3.4 ms, where TCP flows keep 1 to 7, four at a quarter
/// after 18.
const PART: f64 = 0.56;
const PART_PER_NS: f64 = 0.0175e-6;
/// Acknowledgements over which the observed rate of the path is averaged.
const SEEN: f64 = 64.0;
/// If a rail was measured by processes without cores, its capacity seems far too low until a single flow
/// uses it. This fraction of the observed rate is a reliable lower bound of the capacity.
const SURE: f64 = 0.8;
/// Divisor of the difference to the target by which the window grows per round trip.
const APPROACH: u64 = 8;
/// With a queue, the window holds at least as much as the rail carries in this time, or [`INITIAL`] if that
/// is less: acknowledgements and cores are late by as much.
const KEPT_NS: f64 = 1e6;
/// Routes change, so after each period the least round trip rises to the shortest one of the period, but at
/// most by this step: beside a flow that keeps a queue for minutes no round trip is without queueing.
const PERIOD: Duration = Duration::from_ms(5000);
const RISE: Duration = Duration::from_us(20);

/// The window of one link.
#[derive(Debug)]
pub(super) struct Share {
    window: u64,
    /// Below this the window doubles each round trip.
    threshold: u64,
    /// The round trip without a queue.
    least: Duration,
    /// The shortest round trip since `since`.
    shortest: Duration,
    since: Instant,
    /// Queueing delay of the latest round trip.
    queued: Duration,
    /// Smoothed queueing delay in nanoseconds: a short loss of the core must not observe_rate like a queue.
    standing: u64,
    /// Bytes per nanosecond that this flow sends through a queue, and the maximum of that: the path carries
    /// at least as much.
    rate: f64,
    seen: f64,
    handled: HandledLosses,
}

impl Default for Share {
    fn default() -> Self {
        Share {
            window: INITIAL,
            threshold: MOST,
            least: Duration::from_ns(u64::MAX),
            shortest: Duration::from_ns(u64::MAX),
            since: Instant::default(),
            queued: Duration::ZERO,
            standing: 0,
            rate: 0.0,
            seen: 0.0,
            handled: HandledLosses::default(),
        }
    }
}

impl Congestion for Share {
    #[inline]
    fn window(&self) -> u64 {
        self.window
    }

    fn measured(&mut self, now: Instant, sample: Duration) {
        if now.since(self.since) > PERIOD {
            self.since = now;
            let risen = self.least.as_ns().saturating_add(RISE.as_ns());
            self.least = Duration::from_ns(risen).min(self.shortest);
            self.shortest = Duration::from_ns(u64::MAX);
            self.seen -= self.seen / SEEN;
        }
        self.shortest = self.shortest.min(sample);
        self.least = self.least.min(sample);
        self.queued = Duration::from_ns(sample.as_ns() - self.least.as_ns());
        self.standing = Weight::Eighth.mean(self.standing, self.queued.as_ns());
    }

    fn restart_timers(&mut self, now: Instant) {
        self.since = self.since.min(now);
    }

    /// When the queueing delay exceeds the timeout, everything is sent twice, which makes the queue longer,
    /// and Karn's rule allows no sample that would end this. An acknowledgement of the first transmission
    /// is a sample (as in Ludwig and Katz, "The Eifel algorithm", CCR 30(1), 2000).
    fn is_too_soon(&self, after: Duration) -> bool {
        after < self.least && self.standing > 0
    }

    /// A window that was not used does not grow (RFC 7661).
    fn acknowledged(&mut self, _: Instant, len: u64, in_flight: u64, capacity: &dyn Fn() -> Option<f64>) {
        self.observe_rate(in_flight);
        let (most, is_part) = self.most(capacity);
        if self.window > most {
            // Shrink by a quarter per round trip.
            self.window = (self.window - (len / 4).min(self.window)).max(most);
            self.threshold = self.threshold.min(self.window);
            return;
        }
        if in_flight < self.window / 2 {
            return;
        }
        let growth = match self.queues() {
            false if self.window < self.threshold => len,
            false => (len / GROWTH).max(len * SEGMENT / self.window),
            true => {
                self.threshold = self.threshold.min(self.window);
                let missing = if is_part { (most - self.window) / APPROACH } else { 0 };
                len * missing.max(SEGMENT) / self.window
            }
        };
        self.window = (self.window + growth).min(most);
    }

    fn lost(&mut self, _: Instant, number: u32, next: u32) {
        if !self.handled.is_new(number, next) {
            return;
        }
        self.window = if self.queues() { self.window / 2 } else { self.window - self.window / 5 };
        self.window = self.window.max(LEAST);
        self.threshold = self.window;
    }

    /// On a network of microseconds a stall is more often a peer without a core than a blocked path; if the
    /// path is blocked, the timeout doubles and the window halves each time.
    fn stalled(&mut self, _: Instant, next: u32) {
        self.handled.0 = next;
        self.threshold = (self.window / 2).max(LEAST);
        self.window = self.threshold;
    }
}

impl Share {
    /// Updates the observed rate of the path, by Little's law: `in_flight` bytes leave per round trip.
    fn observe_rate(&mut self, in_flight: u64) {
        if self.standing > SLACK.as_ns() && self.window >= self.threshold {
            let round = self.least.as_ns().saturating_add(self.standing) as f64;
            self.rate += (in_flight as f64 / round - self.rate) / SEEN;
            self.seen = self.seen.max(self.rate);
        }
    }

    /// Returns the largest window beside other flows in the same queue, and whether it is a part of a queue
    /// of known length.
    fn most(&self, capacity: &dyn Fn() -> Option<f64>) -> (u64, bool) {
        if self.standing <= SLACK.as_ns() {
            return (MOST, false);
        }
        let Some(capacity) = capacity().map(|capacity| capacity.max(self.seen * SURE)) else {
            return ((SHARE / self.standing).clamp(LEAST, MOST), false);
        };
        let delay = self.standing as f64;
        let ours = (PART - PART_PER_NS * delay) * capacity * delay;
        let least = ((capacity * KEPT_NS) as u64).clamp(LEAST, INITIAL);
        ((ours as u64).clamp(least, LARGEST), true)
    }

    fn queues(&self) -> bool {
        self.queued > SLACK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::default() + Duration::from_us(us)
    }

    fn used(congestion: &mut Share, round_us: u64, rounds: u64) {
        for _ in 0..rounds {
            congestion.measured(at(1_000), Duration::from_us(round_us));
            congestion.acknowledged(at(1_000), congestion.window(), congestion.window(), &|| None);
        }
    }

    #[test]
    fn a_window_in_use_grows_to_its_bound_and_one_that_is_not_stays() {
        let mut congestion = Share::default();
        congestion.acknowledged(at(1_000), 10_000, 10_000, &|| None);
        assert_eq!(congestion.window(), INITIAL);
        used(&mut congestion, 20, 3);
        assert_eq!(congestion.window(), MOST);
    }

    #[test]
    fn a_loss_with_a_queue_halves_and_one_without_takes_a_fifth() {
        for (queued_us, part) in [(0, 5), (5_000, 2)] {
            let mut congestion = Share::default();
            used(&mut congestion, 20, 10);
            congestion.measured(at(2_000), Duration::from_us(20 + queued_us));
            congestion.lost(at(2_000), 7, 20);
            assert_eq!(congestion.window(), MOST - MOST.div_euclid(part), "queued {queued_us} us");
            congestion.lost(at(2_000), 19, 40);
            assert_eq!(congestion.window(), MOST - MOST.div_euclid(part), "of the same window");
            congestion.lost(at(2_000), 20, 40);
            assert!(congestion.window() < MOST - MOST / part);
        }
    }

    #[test]
    fn an_acknowledgement_before_any_round_trip_is_too_soon() {
        let mut congestion = Share::default();
        assert!(!congestion.is_too_soon(Duration::from_us(1)), "nothing is known");
        used(&mut congestion, 100, 1);
        used(&mut congestion, 2_000, 5);
        assert!(congestion.is_too_soon(Duration::from_us(90)));
        assert!(!congestion.is_too_soon(Duration::from_us(110)));
    }

    #[test]
    fn the_window_shrinks_as_the_queue_grows() {
        let mut congestion = Share::default();
        used(&mut congestion, 20, 10);
        // A single late round trip changes little.
        used(&mut congestion, 8_020, 1);
        assert_eq!(congestion.window(), MOST);
        for (queue_us, kib) in [(2_000, 704), (4_000, 608), (8_000, 304), (32_000, 76), (300_000, 16)] {
            used(&mut congestion, 20 + queue_us, 100);
            let found = congestion.window() as f64 / 1024.0;
            assert!((found / f64::from(kib) - 1.0).abs() < 0.02, "{found} KiB in {queue_us} us");
        }
    }

    /// Simulates round trips with a queueing delay of `delay_us` on a path of half a byte per nanosecond.
    fn used_on_known(congestion: &mut Share, delay_us: u64, rounds: u64) {
        for _ in 0..rounds {
            congestion.measured(at(1_000), Duration::from_us(20 + delay_us));
            let window = congestion.window();
            (0..4).for_each(|_| congestion.acknowledged(at(1_000), window / 4, window, &|| Some(0.5)));
        }
    }

    #[test]
    fn about_half_of_a_queue_of_known_length_is_used() {
        let mut congestion = Share::default();
        used(&mut congestion, 20, 1);
        for (queue_us, part) in [(1_200, 0.539), (3_429, 0.5), (6_300, 0.45), (17_714, 0.25)] {
            used_on_known(&mut congestion, queue_us, 200);
            let found = congestion.window() as f64 / (0.5 * 1e3 * queue_us as f64);
            assert!((found / part - 1.0).abs() < 0.02, "{found} of {queue_us} us");
        }
        used_on_known(&mut congestion, 100_000, 200);
        assert_eq!(congestion.window(), INITIAL, "where losses tell what is ours");
    }

    #[test]
    fn a_single_flow_corrects_a_capacity_measured_too_low() {
        let mut congestion = Share::default();
        used(&mut congestion, 20, 5);
        for _ in 0..2_000 {
            let (window, capacity) = (congestion.window(), || Some(0.1));
            congestion.measured(at(1_000), Duration::from_ns(20_000 + window * 2));
            (0..4).for_each(|_| congestion.acknowledged(at(1_000), window / 4, window, &capacity));
        }
        assert!((0.4..0.51).contains(&congestion.seen), "{}", congestion.seen);
    }

    #[test]
    fn a_single_flow_shortens_the_queue() {
        let mut congestion = Share::default();
        used(&mut congestion, 20, 5);
        assert_eq!(congestion.window(), MOST);
        for _ in 0..300 {
            let queue_us = congestion.window() / 500;
            used_on_known(&mut congestion, queue_us, 1);
        }
        assert_eq!(congestion.window(), INITIAL);
    }

    #[test]
    fn a_lasting_queue_is_not_taken_for_a_longer_path() {
        let mut congestion = Share::default();
        congestion.measured(at(0), Duration::from_us(100));
        let minute = (1..600).map(|tenth| at(tenth * 100_000));
        minute.for_each(|now| congestion.measured(now, Duration::from_us(5_000)));
        let queued = congestion.queued;
        assert!(queued < Duration::from_us(4_900) && queued > Duration::from_us(4_600), "{queued:?}");
        congestion.measured(at(61_000_000), Duration::from_us(150));
        assert_eq!(congestion.queued, Duration::ZERO, "a shorter one tells at once");
    }

    #[test]
    fn with_a_queue_it_grows_by_a_segment_a_round_trip() {
        let mut congestion = Share::default();
        used(&mut congestion, 20, 1);
        congestion.measured(at(2_000), Duration::from_us(2_000));
        congestion.lost(at(2_000), 1, 2);
        let before = congestion.window();
        used(&mut congestion, 2_000, 10);
        let grown = congestion.window() - before;
        assert!((9 * SEGMENT..=10 * SEGMENT).contains(&grown), "{grown}");
    }

    #[test]
    fn the_window_never_falls_below_the_least() {
        let mut congestion = Share::default();
        (0..100).for_each(|n| congestion.lost(at(2_000), n, n + 1));
        assert_eq!(congestion.window(), LEAST);
        congestion.stalled(at(2_000), 200);
        congestion.stalled(at(2_000), 300);
        assert_eq!((congestion.window(), congestion.order_max()), (LEAST, LEAST / 4));
    }
}
