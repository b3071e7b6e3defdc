//! Chunks: parts of large messages, which both sides copy.
//!
//! [`outgoing`] holds the chunks that this side sends, [`incoming`] those that it receives. A cell
//! announces a chunk to the receiver; its bytes go through bounce buffers ([`crate::shm::bounce`]) or by
//! single copy ([`crate::shm::cma`]), as chosen by the selector; both sides claim pieces according to
//! [`crate::node::claim`]. If one side does not do its part, because it computes, the other one copies the
//! whole chunk, whatever method was chosen.

pub mod incoming;
pub mod outgoing;

use crate::shm::shared::Shared;
use std::time::{Duration, Instant};

/// Time that a side waits for the other one, which fills or empties bounce buffers, before it copies alone:
/// a peer in an exchange polls after 256 KiB each way. Zen 4: half and twice are within the spread.
const PATIENCE: Duration = Duration::from_micros(30);
/// That time when oversubscribed: some time slices of processes that share a core (found on Zen 5). EPYC,
/// two processes on one core: half and twice are within the spread.
const PATIENCE_OVERSUBSCRIBED: Duration = Duration::from_micros(500);

/// Measures how long the other side has been inactive.
#[derive(Debug, Default)]
pub struct Silence {
    since: Option<Instant>,
    is_final: bool,
}

impl Silence {
    /// Records that the other side has ended and will do nothing more.
    pub fn finish(&mut self) {
        self.is_final = true;
    }

    /// Records activity of the other side.
    #[inline]
    pub fn end(&mut self) {
        self.since = None;
    }

    /// Records that the other side is still inactive; returns whether that has lasted too long.
    pub fn is_long(&mut self, b: &Shared) -> bool {
        let patience = if b.is_oversubscribed { PATIENCE_OVERSUBSCRIBED } else { PATIENCE };
        self.is_final || self.since.get_or_insert_with(Instant::now).elapsed() > patience
    }
}

/// Detects exchanges: two processes that send each other long messages at the same time.
///
/// In an exchange neither side has time to help the other, and the least work is fastest: one copy, with
/// few system calls. So each side pulls the peer's chunks in large pieces, and pushes only when nothing is
/// left to pull. The method of a chunk is chosen before an incoming chunk is seen, so recent chunks predict
/// it.
#[derive(Debug, Default)]
pub struct Exchange {
    /// Chunks that crossed an incoming one, minus those that did not, within bounds.
    score: u8,
    last_crossed: bool,
    peer_crossed: bool,
}

/// Score from which the next chunk is expected to cross another one: after two that did. Half would take
/// two messages that cross once for an exchange; twice is beyond the largest score.
const LIKELY: u8 = 2;
/// Largest score: two chunks that cross none end the expectation (with twice, five).
const MOST: u8 = 3;

impl Exchange {
    /// Returns whether the last chunk crossed one, as far as this side has seen.
    pub fn last(&self) -> bool {
        self.last_crossed
    }

    /// Records whether the peer saw its last chunk cross one of ours; it counts for one chunk. Needed
    /// because the earlier side of an exchange does not see the later side's chunk.
    pub fn note_peer(&mut self, crossed: bool) {
        self.peer_crossed = crossed;
    }

    /// Records that a chunk is complete, and whether it crossed an incoming one.
    pub fn note(&mut self, crossed: bool) {
        self.last_crossed = crossed;
        let crossed = std::mem::take(&mut self.peer_crossed) || crossed;
        self.score = if crossed { (self.score + 1).min(MOST) } else { self.score.saturating_sub(1) };
    }

    /// Returns whether the next chunk is expected to cross one as well.
    pub fn is_likely(&self) -> bool {
        self.score >= LIKELY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_sees_no_crossing_believes_the_peer() {
        let (mut early, mut late) = (Exchange::default(), Exchange::default());
        for _ in 0..LIKELY {
            late.note(true);
            early.note_peer(late.last());
            early.note(false);
        }
        assert!(late.is_likely() && early.is_likely() && !early.last());
        // The peer's report is not reported back to it.
        for _ in 0..=MOST {
            late.note_peer(early.last());
            late.note(false);
            early.note_peer(late.last());
            early.note(false);
        }
        assert!(!late.is_likely() && !early.is_likely());
    }

    #[test]
    fn an_exchange_is_seen_after_two_chunks_and_forgotten_after_two() {
        let mut exchange = Exchange::default();
        let mut likely = |crossed| {
            exchange.note(crossed);
            exchange.is_likely()
        };
        assert_eq!(
            [true, true, true, true, false, true, false, false].map(&mut likely),
            [false, true, true, true, true, true, true, false]
        );
    }
}
