//! Chunks: parts of large messages, which both sides copy.
//!
//! [`outgoing`] has the chunks that this side sends, [`incoming`] those that it receives. A cell tells the
//! receiver of a chunk; its bytes go through bounce buffers ([`crate::shm::bounce`]) or by single copy
//! ([`crate::shm::cma`]), as the selector chose; which side copies which piece follows
//! [`crate::node::claim`]. If one side does not do its part, because it computes, the other one copies all of
//! it, whatever was chosen.

pub mod incoming;
pub mod outgoing;

use crate::shm::shared::Shared;
use std::time::{Duration, Instant};

/// How long a side waits for the other one, which fills or empties bounce buffers, before it copies alone: a
/// peer in an exchange looks after 256 KiB each way. Zen 4: half and twice are within the spread.
const PATIENCE: Duration = Duration::from_micros(30);
/// The same when oversubscribed: some turns of processes that share a core (found on Zen 5). EPYC, two
/// processes on one core: half and twice are within the spread.
const PATIENCE_OVERSUBSCRIBED: Duration = Duration::from_micros(500);

/// Since when the other side has not done anything.
#[derive(Debug, Default)]
pub struct Silence {
    since: Option<Instant>,
    is_final: bool,
}

impl Silence {
    /// The other side has ended: it will not do more than it has done.
    pub fn finish(&mut self) {
        self.is_final = true;
    }

    /// The other side did something.
    #[inline]
    pub fn end(&mut self) {
        self.since = None;
    }

    /// The other side did nothing, again; whether that lasts too long.
    pub fn is_long(&mut self, b: &Shared) -> bool {
        let patience = if b.is_oversubscribed { PATIENCE_OVERSUBSCRIBED } else { PATIENCE };
        self.is_final || self.since.get_or_insert_with(Instant::now).elapsed() > patience
    }
}

/// Whether two processes send each other long messages at the same time.
///
/// Then neither has time to help the other, and the least work is fastest: one copy, with few system calls.
/// So each side pulls the peer's chunks in large pieces, and pushes only when nothing is left to pull. The
/// method of a chunk is chosen before it is known whether another one comes, so the latest ones decide.
#[derive(Debug, Default)]
pub struct Exchange {
    /// Chunks that met another one, less those that did not, within bounds.
    score: u8,
    last: bool,
    told: bool,
}

/// From this score on the next chunk is expected to meet another one, after two that did. Half would take two
/// messages that cross once for an exchange; twice is beyond the largest score.
const LIKELY: u8 = 2;
/// Largest score: two chunks that meet nothing end the expectation (with twice five).
const MOST: u8 = 3;

impl Exchange {
    /// Whether the last chunk met one, as far as this side has seen.
    pub fn last(&self) -> bool {
        self.last
    }

    /// The other side says the same of its last one, which counts once: the side that is early sees nothing
    /// of the late one.
    pub fn told(&mut self, met: bool) {
        self.told = met;
    }

    /// A chunk has left, and met one that came, or none.
    pub fn note(&mut self, met: bool) {
        self.last = met;
        let met = std::mem::take(&mut self.told) || met;
        self.score = if met { (self.score + 1).min(MOST) } else { self.score.saturating_sub(1) };
    }

    /// Whether the next one will meet one as well.
    pub fn is_likely(&self) -> bool {
        self.score >= LIKELY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_sees_nothing_believes_the_other_one() {
        let (mut early, mut late) = (Exchange::default(), Exchange::default());
        for _ in 0..LIKELY {
            late.note(true);
            early.told(late.last());
            early.note(false);
        }
        assert!(late.is_likely() && early.is_likely() && !early.last());
        // Hearsay is not passed on.
        for _ in 0..=MOST {
            late.told(early.last());
            late.note(false);
            early.told(late.last());
            early.note(false);
        }
        assert!(!late.is_likely() && !early.is_likely());
    }

    #[test]
    fn an_exchange_is_seen_after_two_chunks_and_forgotten_after_two() {
        let mut exchange = Exchange::default();
        let mut likely = |met| {
            exchange.note(met);
            exchange.is_likely()
        };
        assert_eq!(
            [true, true, true, true, false, true, false, false].map(&mut likely),
            [false, true, true, true, true, true, true, false]
        );
    }
}
