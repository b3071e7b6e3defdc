//! Swift: a window that keeps the delay at a target. Kumar and others, "Swift: Delay is Simple and Effective
//! for Congestion Control in the Datacenter", SIGCOMM 2020, algorithm 1 and section 3.
//!
//! While the delay is below its target the window grows by a segment per round trip; above it, the window
//! shrinks in proportion to the excess, at most by half and once per round trip. The target grows as the
//! window shrinks, so that many flows in one queue converge (section 3.1, flow-based scaling).
//!
//! Differences from the paper: the delay is that of the whole round trip above the least round trip seen,
//! since rails are kernel networks without time stamps, so there is one window instead of one for the
//! network and one for the hosts; and the window holds at least two segments, since single packets are not
//! paced.

use super::{Congestion, HandledLosses, SEGMENT};
use crate::clock::{Duration, Instant};

const INITIAL: u64 = 10 * SEGMENT;
const LEAST: u64 = 2 * SEGMENT;
const MOST: u64 = 4 << 20;
/// Growth per round trip in segments, the fraction of the excess by which the window shrinks, and the limit
/// of that: `ai`, `beta` and `max_mdf` of algorithm 1.
const GROWTH: f64 = 1.0;
const BETA: f64 = 0.8;
const SHRINK_MAX: f64 = 0.5;
/// Target delay above the least round trip with a large window, and the addition with a small window, in
/// nanoseconds. The base equals the slack of [`super::share`], for the same reason: delayed
/// acknowledgements.
const BASE_NS: f64 = 250e3;
const SCALED_NS: f64 = 250e3;
/// Window sizes in segments between which the addition falls to zero, in proportion to 1 over their square
/// roots (section 3.1).
const SCALED_FROM: u64 = 2;
const SCALED_TO: u64 = 100;
/// Timeouts in a row after which the window is set to the least one.
const RESET_AFTER: u32 = 5;

/// The window of one link.
#[derive(Debug)]
pub(super) struct Swift {
    /// Window in bytes; the fraction matters for growth.
    window: f64,
    /// The least round trip, taken as that of an empty queue, and the latest one.
    least: Duration,
    latest: Duration,
    /// When the window last shrank.
    shrunk_at: Option<Instant>,
    stalls: u32,
    handled: HandledLosses,
}

impl Default for Swift {
    fn default() -> Self {
        Swift {
            window: INITIAL as f64,
            least: Duration::from_ns(u64::MAX),
            latest: Duration::ZERO,
            shrunk_at: None,
            stalls: 0,
            handled: HandledLosses::default(),
        }
    }
}

impl Swift {
    /// Returns 1 over the square root of a window in segments.
    fn inverse_root(segments: f64) -> f64 {
        // `core` has square roots of integers only.
        const SCALE: f64 = 1e6;
        let scaled = (segments * SCALE * SCALE) as u64;
        SCALE / scaled.isqrt().max(1) as f64
    }

    fn target_ns(&self) -> f64 {
        let [from, to] = [SCALED_FROM, SCALED_TO].map(|segments| Self::inverse_root(segments as f64));
        let here = Self::inverse_root(self.window / SEGMENT as f64);
        BASE_NS + SCALED_NS * ((here - to) / (from - to)).clamp(0.0, 1.0)
    }

    fn delay_ns(&self) -> f64 {
        self.latest.as_ns().saturating_sub(self.least.as_ns()) as f64
    }

    /// Shrinks the window, at most once per round trip.
    fn shrink(&mut self, now: Instant, by: f64) {
        if self.shrunk_at.is_none_or(|at| now.since(at) >= self.latest) {
            self.window = (self.window * (1.0 - by.min(SHRINK_MAX))).max(LEAST as f64);
            self.shrunk_at = Some(now);
        }
    }
}

impl Congestion for Swift {
    fn window(&self) -> u64 {
        self.window as u64
    }

    fn measured(&mut self, _: Instant, sample: Duration) {
        self.least = self.least.min(sample);
        self.latest = sample;
    }

    fn restart_timers(&mut self, now: Instant) {
        self.shrunk_at = self.shrunk_at.map(|at| at.min(now));
    }

    fn acknowledged(&mut self, now: Instant, len: u64, in_flight: u64, _: &dyn Fn() -> Option<f64>) {
        self.stalls = 0;
        let (delay, target) = (self.delay_ns(), self.target_ns());
        if delay > target {
            self.shrink(now, BETA * (delay - target) / delay);
        } else if in_flight as f64 >= self.window / 2.0 {
            let grown = GROWTH * SEGMENT as f64 * len as f64 / self.window;
            self.window = (self.window + grown).min(MOST as f64);
        }
    }

    fn lost(&mut self, now: Instant, number: u32, next: u32) {
        if self.handled.is_new(number, next) {
            self.shrink(now, SHRINK_MAX);
        }
    }

    fn stalled(&mut self, now: Instant, next: u32) {
        self.handled.0 = next;
        self.stalls += 1;
        match self.stalls >= RESET_AFTER {
            true => self.window = LEAST as f64,
            false => self.shrink(now, SHRINK_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::default() + Duration::from_us(us)
    }

    /// Simulates round trips of this length with a full window.
    fn used(scheme: &mut Swift, from_us: u64, round_us: u64, rounds: u64) {
        for round in 0..rounds {
            let (now, window) = (at(from_us + round * round_us), scheme.window());
            scheme.measured(now, Duration::from_us(round_us));
            scheme.acknowledged(now, window, window, &|| None);
        }
    }

    #[test]
    fn below_the_target_it_grows_by_a_segment_a_round_trip() {
        let mut scheme = Swift::default();
        used(&mut scheme, 0, 100, 100);
        let grown = scheme.window() - INITIAL;
        assert!((99 * SEGMENT..=100 * SEGMENT).contains(&grown), "{grown}");
    }

    #[test]
    fn above_the_target_it_shrinks_with_the_excess_once_a_round_trip() {
        let mut scheme = Swift { window: 1e6, ..Swift::default() };
        used(&mut scheme, 0, 100, 1);
        let before = scheme.window;
        scheme.measured(at(1_000), Duration::from_us(600));
        (0..5).for_each(|_| scheme.acknowledged(at(1_000), 1448, 1 << 20, &|| None));
        // The delay is 500 us, and at a window of that size the target is 250 us.
        assert!((scheme.window / before - (1.0 - 0.8 * 0.5)).abs() < 0.01, "{}", scheme.window / before);
        scheme.measured(at(2_000), Duration::from_us(100_000));
        scheme.acknowledged(at(200_000), 1448, 1 << 20, &|| None);
        assert!((scheme.window / before - 0.3).abs() < 0.01, "half at most: {}", scheme.window / before);
    }

    #[test]
    fn a_small_window_may_queue_longer() {
        let target =
            |segments: u64| Swift { window: (segments * SEGMENT) as f64, ..Swift::default() }.target_ns();
        assert!((target(2) - 500e3).abs() < 1.0 && (target(100) - 250e3).abs() < 1.0);
        assert!(target(10) < target(5) && target(5) < target(2));
        assert_eq!(target(1_000), 250e3);
    }

    #[test]
    fn the_delay_settles_at_the_target() {
        let mut scheme = Swift::default();
        used(&mut scheme, 0, 100, 1);
        // A path that carries a byte per nanosecond: bytes in flight beyond 100 us of it queue.
        let mut now = at(1_000);
        for _ in 0..3_000 {
            let window = scheme.window();
            let round = Duration::from_ns(window.max(100_000));
            now = now + round;
            scheme.measured(now, round);
            (0..8).for_each(|_| scheme.acknowledged(now, window / 8, window, &|| None));
        }
        let queue = scheme.window() as f64 - 100e3;
        assert!((200e3..320e3).contains(&queue), "{queue} ns");
    }

    #[test]
    fn losses_halve_it_once_a_window_and_stalls_end_at_the_least() {
        let mut scheme = Swift { window: 1e6, ..Swift::default() };
        scheme.lost(at(1), 7, 20);
        scheme.lost(at(2), 19, 40);
        assert_eq!(scheme.window(), 500_000);
        (0..5).for_each(|n| scheme.stalled(at(10 + n), 50));
        assert_eq!(scheme.window(), LEAST);
    }
}
