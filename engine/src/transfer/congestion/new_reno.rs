//! NewReno as specified for QUIC: RFC 9002, section 7 and appendix B.
//!
//! The window doubles each round trip until a loss halves it; after that it grows by a segment per round
//! trip. The losses of one window count once, which is the purpose of NewReno (RFC 6582); its rules for
//! partial acknowledgements are not needed, since links acknowledge selectively.

use super::{Congestion, HandledLosses, SEGMENT};
use crate::clock::{Duration, Instant};

/// RFC 9002, section 7.2.
const INITIAL: u64 = 10 * SEGMENT;
const LEAST: u64 = 2 * SEGMENT;

/// The window of one link.
#[derive(Debug)]
pub(super) struct NewReno {
    window: u64,
    /// Below this the window doubles each round trip.
    threshold: u64,
    handled: HandledLosses,
}

impl Default for NewReno {
    fn default() -> Self {
        NewReno { window: INITIAL, threshold: u64::MAX, handled: HandledLosses::default() }
    }
}

impl Congestion for NewReno {
    fn window(&self) -> u64 {
        self.window
    }

    fn measured(&mut self, _: Instant, _: Duration) {}

    fn acknowledged(&mut self, _: Instant, len: u64, in_flight: u64, _: &dyn Fn() -> Option<f64>) {
        // A window that was not used does not grow (section 7.8).
        if in_flight < self.window / 2 {
            return;
        }
        self.window += match self.window < self.threshold {
            true => len,
            false => (SEGMENT * len / self.window).max(1),
        };
    }

    fn lost(&mut self, _: Instant, number: u32, next: u32) {
        if self.handled.is_new(number, next) {
            self.window = (self.window / 2).max(LEAST);
            self.threshold = self.window;
        }
    }

    /// Persistent congestion (section 7.6.2).
    fn stalled(&mut self, _: Instant, next: u32) {
        self.handled.0 = next;
        self.threshold = (self.window / 2).max(LEAST);
        self.window = LEAST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(scheme: &mut NewReno) {
        let window = scheme.window();
        (0..4).for_each(|_| scheme.acknowledged(Instant::default(), window / 4, window, &|| None));
    }

    #[test]
    fn it_doubles_until_a_loss_and_then_grows_by_a_segment_a_round_trip() {
        let mut scheme = NewReno::default();
        (0..4).for_each(|_| round(&mut scheme));
        assert_eq!(scheme.window(), 16 * INITIAL);
        scheme.lost(Instant::default(), 7, 20);
        assert_eq!(scheme.window(), 8 * INITIAL);
        let before = scheme.window();
        (0..10).for_each(|_| round(&mut scheme));
        let grown = scheme.window() - before;
        assert!((9 * SEGMENT..=10 * SEGMENT).contains(&grown), "{grown}");
    }

    #[test]
    fn the_losses_of_one_window_count_once() {
        let mut scheme = NewReno { window: 64 * SEGMENT, ..NewReno::default() };
        scheme.lost(Instant::default(), 7, 20);
        scheme.lost(Instant::default(), 19, 40);
        assert_eq!(scheme.window(), 32 * SEGMENT);
        scheme.lost(Instant::default(), 20, 40);
        assert_eq!(scheme.window(), 16 * SEGMENT);
    }

    #[test]
    fn a_stall_leaves_the_least_and_begins_anew() {
        let mut scheme = NewReno { window: 64 * SEGMENT, ..NewReno::default() };
        scheme.stalled(Instant::default(), 20);
        assert_eq!(scheme.window(), LEAST);
        (0..4).for_each(|_| round(&mut scheme));
        assert_eq!(scheme.window(), 32 * SEGMENT, "doubling up to half of what it was");
    }
}
