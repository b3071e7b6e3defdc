//! NewReno as QUIC has it: RFC 9002, section 7 and appendix B.
//!
//! The window doubles with each round trip until a loss, which halves it; from then on it grows by a segment
//! a round trip. The losses of one window count once, which is what NewReno (RFC 6582) is about; since links
//! acknowledge selectively, its rules for partial acknowledgements have no use here.

use super::{Answered, Congestion, SEGMENT};
use crate::clock::{Duration, Instant};

/// RFC 9002, section 7.2.
const INITIAL: u64 = 10 * SEGMENT;
const LEAST: u64 = 2 * SEGMENT;

/// The window of one link.
#[derive(Debug)]
pub(super) struct NewReno {
    window: u64,
    /// Below this it doubles with each round trip.
    threshold: u64,
    answered: Answered,
}

impl Default for NewReno {
    fn default() -> Self {
        NewReno { window: INITIAL, threshold: u64::MAX, answered: Answered::default() }
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
        if self.answered.is_news(number, next) {
            self.window = (self.window / 2).max(LEAST);
            self.threshold = self.window;
        }
    }

    /// Persistent congestion (section 7.6.2).
    fn stalled(&mut self, _: Instant, next: u32) {
        self.answered.0 = next;
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
