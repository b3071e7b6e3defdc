//! The scheme of this library: a window that shares the way fairly with TCP and does not take every loss for
//! congestion.
//!
//! TCP Veno (Fu and Liew, IEEE JSAC 21(2), 2003) asks at a loss whether anything queues on the way: if so the
//! window is halved as Reno does, else the loss was chance and the window shrinks by a fifth. Veno tells by
//! bytes queued; here by the delay beyond the least round trip, since on a network of a cluster
//! acknowledgements that wait for company weigh more than a few packets in a queue. While nothing queues the
//! window grows in proportion to itself (Scalable TCP; Kelly, ACM CCR 33(2), 2003), else by a segment a round
//! trip, so that a TCP flow in the same queue gets its share.
//!
//! In a long queue without losses each flow gets the part of the rate that it has of the queue. What others
//! keep there differs too much for one window: Linux holds a TCP flow in the queue of its own interface (TCP
//! small queues) at a few milliseconds of it, at its buffer, or, with BBR, at one. But where the rail was
//! measured its capacity is known, and capacity times delay is the whole queue (as Nimbus finds cross
//! traffic: Goyal and others, SIGCOMM 2022). So about half of that may be in flight, whatever the other half
//! is, and less of it the longer the queue ([`Share::most`]): more than two flows of this kind agree
//! where each has its part, and one that is alone makes the queue short. Without a measured capacity, bytes
//! in flight times the delay stay below a bound ([`SHARE`]), which suits a gigabit per second.

use super::{Answered, Congestion, SEGMENT};
use crate::clock::{Duration, Instant};

/// Before the first acknowledgement: what two trains of datagrams carry.
const INITIAL: u64 = 128 << 10;
/// Less than this does not keep acknowledgements coming.
const LEAST: u64 = 16 << 10;
/// As much as the TCP rail's send buffer lets be in flight: in a short queue, or in one of unknown length.
const MOST: u64 = 704 << 10;
/// The same in a long queue whose length is known: as much as autotuned TCP flows.
const LARGEST: u64 = 4 << 20;
/// Growth in a round trip while nothing queues, as a part of the window.
const GROWTH: u64 = 8;
/// A round trip that is longer than the least by no more is due to acknowledgements that waited and to cores
/// that were busy, not to a queue.
const SLACK: Duration = Duration::from_us(250);
/// Bytes in flight times the nanoseconds that they queue. Measured: with about as much, a flow gets half of a
/// rail of 1 Gbit/s beside a TCP flow of the usual buffers (`nmad bench fairness`).
const SHARE: u64 = (304 << 10) * 8_000_000;
/// Part of a queue of known length that may be ours, and what it falls by for each nanosecond of the queue.
/// Two meet at half of it after 3.4 ms, where TCP flows keep 1 to 7, four at a quarter after 18.
const PART: f64 = 0.56;
const PART_PER_NS: f64 = 0.0175e-6;
/// Acknowledgements over which it is averaged what the way carries.
const SEEN: f64 = 64.0;
/// A rail that was measured by processes without cores seems far too slow, until one flow was alone on it. So
/// much of what was seen then surely is no accident.
const SURE: f64 = 0.8;
/// Part of the difference by which it is approached in a round trip.
const APPROACH: u64 = 8;
/// In no queue it is less than what the rail carries in this time, nor than [`INITIAL`] if that is less:
/// acknowledgements and cores are late by as much.
const KEPT_NS: f64 = 1e6;
/// Routes change, so the least round trip rises to that of such a period, but by no more than this at a time:
/// beside a flow that keeps a queue for minutes no round trip is without it.
const PERIOD: Duration = Duration::from_ms(5000);
const RISE: Duration = Duration::from_us(20);

/// The window of one link.
#[derive(Debug)]
pub(super) struct Share {
    window: u64,
    /// Below this it doubles with each round trip.
    threshold: u64,
    /// The round trip when nothing queues.
    least: Duration,
    /// The shortest one since `since`.
    shortest: Duration,
    since: Instant,
    /// What the latest round trip has spent in queues.
    queued: Duration,
    /// The same smoothed, in nanoseconds: a process without a core for a moment makes no queue.
    standing: u64,
    /// Bytes per nanosecond that we send through a queue, and the most of that: no more than the way carries.
    rate: f64,
    seen: f64,
    answered: Answered,
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
            answered: Answered::default(),
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
        self.standing = (7 * self.standing + self.queued.as_ns()) / 8;
    }

    /// When a queue has outgrown the timeout everything is sent twice,
    /// which makes it longer, and Karn's rule takes no sample that would end this; what answers the first
    /// time is one (as Ludwig and Katz, "The Eifel algorithm", CCR 30(1), 2000).
    fn is_too_soon(&self, after: Duration) -> bool {
        after < self.least && self.standing > 0
    }

    /// A window that was not used does not grow (RFC 7661).
    fn acknowledged(&mut self, _: Instant, len: u64, in_flight: u64, capacity: &dyn Fn() -> Option<f64>) {
        self.look(in_flight);
        let (most, is_part) = self.most(capacity);
        if self.window > most {
            // By a quarter in a round trip.
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
        if !self.answered.is_news(number, next) {
            return;
        }
        self.window = if self.queues() { self.window / 2 } else { self.window - self.window / 5 };
        self.window = self.window.max(LEAST);
        self.threshold = self.window;
    }

    /// Nothing arrives any more. On a network of microseconds that is more often a peer without a core than
    /// a way that is blocked; if it is blocked, the timeout doubles and the window halves each time.
    fn stalled(&mut self, _: Instant, next: u32) {
        self.answered.0 = next;
        self.threshold = (self.window / 2).max(LEAST);
        self.window = self.threshold;
    }
}

impl Share {
    /// What the way carries at least: by Little's law, as much of `in_flight` as leaves in a round trip.
    fn look(&mut self, in_flight: u64) {
        if self.standing > SLACK.as_ns() && self.window >= self.threshold {
            let round = self.least.as_ns().saturating_add(self.standing) as f64;
            self.rate += (in_flight as f64 / round - self.rate) / SEEN;
            self.seen = self.seen.max(self.rate);
        }
    }

    /// The largest window beside others in the same queue, and whether that is a part of a queue whose length
    /// is known.
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
    fn what_comes_sooner_than_any_round_trip_answers_something_else() {
        let mut congestion = Share::default();
        assert!(!congestion.is_too_soon(Duration::from_us(1)), "nothing is known");
        used(&mut congestion, 100, 1);
        used(&mut congestion, 2_000, 5);
        assert!(congestion.is_too_soon(Duration::from_us(90)));
        assert!(!congestion.is_too_soon(Duration::from_us(110)));
    }

    #[test]
    fn the_longer_the_queue_the_less_of_it_is_ours() {
        let mut congestion = Share::default();
        used(&mut congestion, 20, 10);
        // One that was late changes little.
        used(&mut congestion, 8_020, 1);
        assert_eq!(congestion.window(), MOST);
        for (queue_us, kib) in [(2_000, 704), (4_000, 608), (8_000, 304), (32_000, 76), (300_000, 16)] {
            used(&mut congestion, 20 + queue_us, 100);
            let found = congestion.window() as f64 / 1024.0;
            assert!((found / f64::from(kib) - 1.0).abs() < 0.02, "{found} KiB in {queue_us} us");
        }
    }

    /// Round trips with a queue of `delay_us` on a way of half a byte in a nanosecond.
    fn used_on_known(congestion: &mut Share, delay_us: u64, rounds: u64) {
        for _ in 0..rounds {
            congestion.measured(at(1_000), Duration::from_us(20 + delay_us));
            let window = congestion.window();
            (0..4).for_each(|_| congestion.acknowledged(at(1_000), window / 4, window, &|| Some(0.5)));
        }
    }

    #[test]
    fn of_a_queue_of_known_length_about_half_is_ours() {
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
    fn a_way_that_was_measured_too_slow_is_found_out_by_who_is_alone() {
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
    fn who_is_alone_makes_the_queue_short() {
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
    fn a_queue_that_never_ends_is_not_taken_for_the_way() {
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
    fn it_never_falls_below_what_keeps_a_link_going() {
        let mut congestion = Share::default();
        (0..100).for_each(|n| congestion.lost(at(2_000), n, n + 1));
        assert_eq!(congestion.window(), LEAST);
        congestion.stalled(at(2_000), 200);
        congestion.stalled(at(2_000), 300);
        assert_eq!((congestion.window(), congestion.order_max()), (LEAST, LEAST / 4));
    }
}
