//! How much may be in flight on a lossy link: a window that shares the way fairly with TCP and does not take
//! every loss for congestion.
//!
//! TCP Veno (Fu and Liew, IEEE JSAC 21(2), 2003) asks at a loss whether anything queues on the way: if so the
//! window is halved as Reno does, else the loss was chance and the window shrinks by a fifth. Veno tells by
//! bytes queued; here by the delay beyond the least round trip, since on a network of a cluster
//! acknowledgements that wait for company weigh more than a few packets in a queue. While nothing queues the
//! window grows in proportion to itself (Scalable TCP; Kelly, ACM CCR 33(2), 2003), else by a segment a round
//! trip, so that a TCP flow in the same queue gets its share.
//!
//! Linux lets a TCP flow have about a millisecond's worth at twice `window / round trip` in the queue of its
//! own interface (TCP small queues), so the longer that queue the less of it is TCP's, long before anything
//! is lost. Hence here bytes in flight times the delay of the queue stay below a bound, too ([`SHARE`]).

use crate::clock::{Duration, Instant};

/// Before the first acknowledgement: what two trains of datagrams carry.
const INITIAL: u64 = 128 << 10;
/// Less than this does not keep acknowledgements coming.
const LEAST: u64 = 16 << 10;
/// As much as the TCP rail's send buffer lets be in flight: two flows in a long queue share it by that.
const MOST: u64 = 704 << 10;
/// Growth in a round trip while something queues, in bytes: a segment of TCP.
const SEGMENT: u64 = 1448;
/// Growth in a round trip while nothing queues: so much of the window.
const GROWTH: u64 = 8;
/// A round trip that is longer than the least by no more is due to acknowledgements that waited and to cores
/// that were busy, not to a queue.
const SLACK: Duration = Duration::from_us(250);
/// Bytes in flight times the nanoseconds that they queue. Measured: with about as much, a flow gets half of a
/// shaped rail beside a TCP flow of the usual buffers (`nmad bench fairness`).
const SHARE: u64 = (304 << 10) * 8_000_000;
/// The least round trip is that of one or two of these periods: routes change.
const PERIOD: Duration = Duration::from_ms(5000);
/// Orders into which a window is cut at least, so that a loss shows by the arrival of others.
const ORDERS: u64 = 4;
/// No order is cut shorter than this, in bytes.
const ORDER_MIN: u64 = 4 << 10;

/// The window of one link.
#[derive(Debug)]
pub(crate) struct Congestion {
    window: u64,
    /// Below this it doubles with each round trip.
    threshold: u64,
    /// Least round trip of this period and of the one before.
    least: [Duration; 2],
    since: Instant,
    /// What the latest round trip has spent in queues.
    queued: Duration,
    /// The same smoothed, in nanoseconds: who has no core for a moment makes no queue.
    standing: u64,
    /// Losses of earlier numbers have been answered.
    answered: u32,
}

impl Default for Congestion {
    fn default() -> Self {
        Congestion {
            window: INITIAL,
            threshold: MOST,
            least: [Duration::from_ns(u64::MAX); 2],
            since: Instant::default(),
            queued: Duration::ZERO,
            standing: 0,
            answered: 0,
        }
    }
}

impl Congestion {
    /// Bytes that may be in flight.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Longest order that should be given to the rail, in bytes.
    pub(crate) fn order_max(&self) -> u64 {
        (self.window / ORDERS).max(ORDER_MIN)
    }

    /// A round trip was measured.
    pub(crate) fn measured(&mut self, now: Instant, sample: Duration) {
        if now.since(self.since) > PERIOD {
            self.since = now;
            self.least = [Duration::from_ns(u64::MAX), self.least[0]];
        }
        self.least[0] = self.least[0].min(sample);
        let least = self.least();
        self.queued = Duration::from_ns(sample.as_ns().saturating_sub(least.as_ns()));
        self.standing = (7 * self.standing + self.queued.as_ns()) / 8;
    }

    /// The least round trip of late.
    fn least(&self) -> Duration {
        self.least[0].min(self.least[1])
    }

    /// Whether an acknowledgement that comes `after` a packet was sent again answers the time before: it
    /// comes sooner than any round trip. When a queue has outgrown the timeout everything is sent twice,
    /// which makes it longer, and Karn's rule takes no sample that would end this; what answers the first
    /// time is one (as Ludwig and Katz, "The Eifel algorithm", CCR 30(1), 2000).
    pub(crate) fn is_too_soon(&self, after: Duration) -> bool {
        after < self.least() && self.standing > 0
    }

    /// The peer has `len` bytes more, of `in_flight`. A window that was not used does not grow (RFC 7661).
    pub(crate) fn acknowledged(&mut self, len: u64, in_flight: u64) {
        let most = self.most();
        if self.window > most {
            // By a quarter in a round trip.
            self.window = (self.window - (len / 4).min(self.window)).max(most);
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
                len * SEGMENT / self.window
            }
        };
        self.window = (self.window + growth).min(most);
    }

    /// Number `number` was lost, and `next` is the next one to be sent. A window's losses count once.
    pub(crate) fn lost(&mut self, number: u32, next: u32) {
        if number.wrapping_sub(self.answered) >= 1 << 31 {
            return;
        }
        self.answered = next;
        self.window = if self.queues() { self.window / 2 } else { self.window - self.window / 5 };
        self.window = self.window.max(LEAST);
        self.threshold = self.window;
    }

    /// Nothing arrives any more. On a network of microseconds that is more often a peer without a core than
    /// a way that is blocked; if it is blocked, the timeout doubles and the window halves each time.
    pub(crate) fn stalled(&mut self, next: u32) {
        self.answered = next;
        self.threshold = (self.window / 2).max(LEAST);
        self.window = self.threshold;
    }

    /// The largest window beside others in the same queue.
    fn most(&self) -> u64 {
        (SHARE / self.standing.max(1)).clamp(LEAST, MOST)
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

    fn used(congestion: &mut Congestion, round_us: u64, rounds: u64) {
        for _ in 0..rounds {
            congestion.measured(at(1_000), Duration::from_us(round_us));
            congestion.acknowledged(congestion.window(), congestion.window());
        }
    }

    #[test]
    fn a_window_in_use_grows_to_its_bound_and_one_that_is_not_stays() {
        let mut congestion = Congestion::default();
        congestion.acknowledged(10_000, 10_000);
        assert_eq!(congestion.window(), INITIAL);
        used(&mut congestion, 20, 3);
        assert_eq!(congestion.window(), MOST);
    }

    #[test]
    fn a_loss_with_a_queue_halves_and_one_without_takes_a_fifth() {
        for (queued_us, part) in [(0, 5), (5_000, 2)] {
            let mut congestion = Congestion::default();
            used(&mut congestion, 20, 10);
            congestion.measured(at(2_000), Duration::from_us(20 + queued_us));
            congestion.lost(7, 20);
            assert_eq!(congestion.window(), MOST - MOST.div_euclid(part), "queued {queued_us} us");
            congestion.lost(19, 40);
            assert_eq!(congestion.window(), MOST - MOST.div_euclid(part), "of the same window");
            congestion.lost(20, 40);
            assert!(congestion.window() < MOST - MOST / part);
        }
    }

    #[test]
    fn what_comes_sooner_than_any_round_trip_answers_something_else() {
        let mut congestion = Congestion::default();
        assert!(!congestion.is_too_soon(Duration::from_us(1)), "nothing is known");
        used(&mut congestion, 100, 1);
        used(&mut congestion, 2_000, 5);
        assert!(congestion.is_too_soon(Duration::from_us(90)));
        assert!(!congestion.is_too_soon(Duration::from_us(110)));
    }

    #[test]
    fn the_longer_the_queue_the_less_of_it_is_ours() {
        let mut congestion = Congestion::default();
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

    #[test]
    fn with_a_queue_it_grows_by_a_segment_a_round_trip() {
        let mut congestion = Congestion::default();
        used(&mut congestion, 20, 1);
        congestion.measured(at(2_000), Duration::from_us(2_000));
        congestion.lost(1, 2);
        let before = congestion.window();
        used(&mut congestion, 2_000, 10);
        let grown = congestion.window() - before;
        assert!((9 * SEGMENT..=10 * SEGMENT).contains(&grown), "{grown}");
    }

    #[test]
    fn it_never_falls_below_what_keeps_a_link_going() {
        let mut congestion = Congestion::default();
        (0..100).for_each(|n| congestion.lost(n, n + 1));
        assert_eq!(congestion.window(), LEAST);
        congestion.stalled(200);
        congestion.stalled(300);
        assert_eq!((congestion.window(), congestion.order_max()), (LEAST, LEAST / ORDERS));
    }
}
