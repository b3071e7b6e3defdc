//! What has arrived on a link: the numbers that the peer is told, and when it is told.

use crate::clock::{Duration, Instant};
use alloc::collections::BTreeSet;

/// Transfers of fewer bytes are no sample of a rail's bandwidth: their time is mostly latency and clock
/// error.
pub(super) const SERVICE_MIN: u64 = 48 << 10;
/// Time after which what has arrived on a lossy link is acknowledged.
const EAGER_DELAY: Duration = Duration::from_us(50);
/// A number further ahead of the first gap than this is invalid.
const FAR_MAX: u32 = 1 << 20;

/// Records which numbers of the peer's packets and chunks have arrived.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    below: u32,
    beyond: u64,
    /// Numbers further ahead; only replays of a dead link arrive that far out of order.
    far: BTreeSet<u32>,
    /// Packets and chunks that arrived since the last acknowledgement was sent.
    pub(super) unacknowledged: u32,
    /// Something arrived twice or out of order: acknowledge at once.
    immediate: bool,
    /// The peer should learn at once when this arrived, as a bandwidth sample.
    pub(crate) wanted: bool,
    /// Bytes that arrived since the last acknowledgement was sent; counted only for messages split over
    /// several rails.
    bytes: u64,
    /// Bytes of such messages that arrived since the peer's last acknowledgement, or since this side began
    /// to send.
    pub(super) in_between: u64,
    since: Instant,
}

impl Arrivals {
    /// Records a number; returns false if it arrived before or is impossibly far ahead.
    #[inline]
    pub(crate) fn accept(&mut self, now: Instant, number: u32) -> bool {
        if self.unacknowledged == 0 {
            self.since = now;
        }
        self.unacknowledged += 1;
        if number == self.below && self.beyond == 0 && self.far.is_empty() {
            self.below = self.below.wrapping_add(1);
            return true;
        }
        self.accept_out_of_order(number)
    }

    /// Records a number while others are missing.
    #[inline(never)]
    fn accept_out_of_order(&mut self, number: u32) -> bool {
        match number.wrapping_sub(self.below) {
            0 => {
                self.advance();
                true
            }
            ahead => {
                self.immediate = true;
                self.accept_ahead(number, ahead)
            }
        }
    }

    /// Records `len` bytes of a message that is split over several rails. The sender derives the next split
    /// from the time that they took, so enough of them for a sample are acknowledged at once.
    #[inline]
    pub(crate) fn note(&mut self, len: u64) {
        self.bytes += len;
        self.in_between += len;
        self.wanted |= self.bytes >= SERVICE_MIN;
    }

    /// Whether the number is so far ahead that no sender can have reached it.
    pub(crate) fn is_impossible(&self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.below);
        (FAR_MAX..1 << 31).contains(&ahead)
    }

    fn accept_ahead(&mut self, number: u32, ahead: u32) -> bool {
        if ahead >= FAR_MAX {
            return false;
        }
        if ahead > 64 {
            return self.far.insert(number);
        }
        let bit = 1 << (ahead - 1);
        let new = self.beyond & bit == 0;
        self.beyond |= bit;
        new
    }

    /// Records that `below` has arrived, and moves past all numbers after it that arrived earlier.
    fn advance(&mut self) {
        loop {
            self.below = self.below.wrapping_add(1);
            let seen = self.beyond & 1 != 0;
            self.beyond >>= 1;
            if !self.far.is_empty() && self.far.remove(&self.below.wrapping_add(64)) {
                self.beyond |= 1 << 63;
            }
            if !seen {
                return;
            }
        }
    }

    /// Returns the first number that has not arrived.
    #[inline]
    pub(crate) fn below(&self) -> u32 {
        self.below
    }

    /// Returns the numbers that have arrived beyond the first gap, as bits.
    #[inline]
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// The clock went back: nothing has arrived later than now.
    pub(super) fn restart_timers(&mut self, now: Instant) {
        self.since = self.since.min(now);
    }

    /// Resets the counts after an acknowledgement was sent.
    #[inline]
    pub(crate) fn acknowledged(&mut self) {
        self.unacknowledged = 0;
        self.immediate = false;
        self.wanted = false;
        self.bytes = 0;
    }

    pub(super) fn due_at(&self, count: u32) -> Option<Instant> {
        match self.unacknowledged {
            0 => None,
            n if n >= count || self.immediate => Some(self.since),
            _ => Some(self.since + EAGER_DELAY),
        }
    }
}
