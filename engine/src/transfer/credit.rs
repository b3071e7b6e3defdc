//! Byte credits bound the eager data that a peer stores without a posted receive.
//!
//! Sender and receiver charge each eager message the same number of bytes. The receiver advertises the total
//! that may be charged; a sender that would exceed it uses rendezvous, so nothing ever blocks and
//! unexpected data is bounded. The envelopes of rendezvous requests are not charged: MPI needs all of them
//! to match.

/// Bytes charged per message besides its data: about the size of its entry.
const OVERHEAD: u64 = 128;
/// Limit in bytes that both sides assume before the receiver has advertised one.
pub(crate) const INITIAL: u64 = 256 << 10;

/// Smallest step from one advertised limit to the next: advertising one takes a message.
fn worth_advertising(budget: u64) -> u64 {
    (budget / 4).max(INITIAL / 2)
}

/// Returns the charge of an eager message of `len` bytes.
pub(crate) fn charge(len: u64) -> u64 {
    // The length of a pushed message comes from the peer and may be any number.
    len.saturating_add(OVERHEAD)
}

/// Credits of both directions with one peer.
#[derive(Debug)]
pub(crate) struct Credit {
    /// Bytes that this side may charge in total, and has charged.
    limit: u64,
    spent: u64,
    /// Bytes that the peer may send in total, that have arrived, and that were consumed.
    advertised: u64,
    received: u64,
    consumed: u64,
    /// Bytes that the peer may have stored here; at least [`INITIAL`].
    budget: u64,
    /// Values derived from `advertised`, since each message compares with both: the consumed bytes from
    /// which a new limit is worth advertising, and the received bytes from which the peer may soon run out
    /// of credit.
    owes_from: u64,
    short_from: u64,
}

impl Credit {
    pub(crate) fn new(budget: u64) -> Self {
        let budget = budget.max(INITIAL);
        let mut credit = Credit {
            limit: INITIAL,
            spent: 0,
            advertised: 0,
            received: 0,
            consumed: 0,
            budget,
            owes_from: 0,
            short_from: 0,
        };
        credit.advertise(INITIAL);
        credit
    }

    fn advertise(&mut self, limit: u64) {
        self.advertised = limit;
        // Above the highest number there is no further limit to advertise.
        let worth = limit.checked_add(worth_advertising(self.budget));
        self.owes_from = worth.map_or(u64::MAX, |worth| worth.saturating_sub(self.budget));
        self.short_from = limit.saturating_add(1).saturating_sub(self.budget / 2);
    }

    /// Whether there is enough credit for an eager message.
    #[inline]
    pub(crate) fn has(&self, len: u64) -> bool {
        self.spent + charge(len) <= self.limit
    }

    /// Spends credit for an eager message; false: not enough, use rendezvous.
    #[inline]
    pub(crate) fn spend(&mut self, len: u64) -> bool {
        let enough = self.has(len);
        if enough {
            self.spend_known(len);
        }
        enough
    }

    /// Spends credit for an eager message after [`Credit::has`] was true.
    #[inline]
    pub(crate) fn spend_known(&mut self, len: u64) {
        debug_assert!(self.has(len));
        self.spent += charge(len);
    }

    /// Returns the credit of a message that was not sent after all.
    pub(crate) fn give_back(&mut self, len: u64) {
        self.spent -= charge(len);
    }

    /// Spends credit for the part of a large message of `len` bytes that is pushed before any answer, and
    /// returns its length: the whole message, at most `most` bytes; if that is more than half of the credit
    /// left, `part` bytes; zero if even that is too much. The other half is left for small messages.
    pub(crate) fn spend_push(&mut self, len: u64, part: u64, most: u64) -> u64 {
        let left = (self.limit.saturating_sub(self.spent) / 2).saturating_sub(OVERHEAD);
        let bytes = [len.min(most), len.min(part)].into_iter().find(|bytes| *bytes <= left).unwrap_or(0);
        if bytes > 0 && self.spend(bytes) { bytes } else { 0 }
    }

    /// Whether there is credit to push a message of `len` bytes and `more` of the same length after it;
    /// half of the credit left is reserved for small messages.
    #[inline]
    pub(crate) fn has_for_push(&self, len: u64, more: u64) -> bool {
        charge(len).saturating_mul(1 + more) <= self.limit.saturating_sub(self.spent) / 2
    }

    /// Whether there is credit for a message of `len` bytes to a receiver that is late. Waiting for that
    /// receiver costs more than the credit that other messages lack, so small messages keep only
    /// [`INITIAL`] bytes.
    pub(crate) fn has_for_late(&self, len: u64) -> bool {
        let left = self.limit.saturating_sub(self.spent);
        charge(len) <= left - INITIAL.min(left / 2)
    }

    /// Raises the limit to the one that the peer advertised.
    pub(crate) fn granted(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Charges an eager message that has arrived; false if it exceeds the advertised limit.
    #[inline]
    pub(crate) fn received(&mut self, len: u64) -> bool {
        self.received = self.received.saturating_add(charge(len));
        self.received <= self.advertised
    }

    /// Records that a message of `len` bytes is no longer stored.
    #[inline]
    pub(crate) fn consume(&mut self, len: u64) {
        self.consumed += charge(len);
    }

    /// Whether the peer may soon run out of credit: then a new limit is sent at once and does not wait for
    /// a packet.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.received >= self.short_from
    }

    /// Whether a new limit is worth advertising: enough was consumed since the last one, or the budget is
    /// larger than the initial limit.
    #[inline]
    pub(crate) fn owes_limit(&self) -> bool {
        self.consumed >= self.owes_from
    }

    /// Returns the new limit if it is worth advertising.
    #[inline]
    pub(crate) fn next_limit(&mut self) -> Option<u64> {
        if !self.owes_limit() {
            return None;
        }
        self.advertise(self.consumed.saturating_add(self.budget));
        Some(self.advertised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn thresholds_match_their_definition() {
        for budget in [INITIAL, INITIAL + 1, 3 * INITIAL, 1 << 40, u64::MAX] {
            let mut credit = Credit::new(budget);
            for step in 0..3000 {
                let now = credit.consumed.saturating_add(credit.budget);
                assert_eq!(
                    credit.owes_limit(),
                    now.saturating_sub(credit.advertised) >= worth_advertising(budget)
                );
                let left = credit.advertised.saturating_sub(credit.received);
                assert_eq!(credit.is_short(), left < credit.budget / 2);
                if !credit.received(1000) || step % 7 == 0 {
                    credit.next_limit();
                }
                credit.consume(1000);
            }
        }
    }

    #[test]
    fn a_sender_stops_at_the_limit_and_resumes_at_the_next() {
        let (mut sender, mut receiver) = (Credit::new(1 << 20), Credit::new(INITIAL));
        let mut sent = 0;
        while sender.spend(1000) {
            sent += 1;
        }
        assert_eq!(sent, INITIAL / charge(1000));
        assert_eq!(receiver.next_limit(), None);
        (0..sent).for_each(|_| receiver.consume(1000));
        sender.granted(receiver.next_limit().expect("all of the budget was consumed"));
        assert!(sender.spend(1000));
    }

    #[test]
    fn messages_to_a_late_receiver_leave_credit_for_small_ones() {
        let mut sender = Credit::new(INITIAL);
        assert!(sender.has_for_late(100 << 10) && !sender.has_for_late(INITIAL / 2));
        sender.granted(4 << 20);
        assert!(sender.has_for_late(3 << 20) && !sender.has_for_late(4 << 20));
        while sender.has_for_late(100 << 10) {
            sender.spend_known(100 << 10);
        }
        assert!(sender.has(INITIAL / 2), "what is left serves others");
    }

    #[test]
    fn a_push_without_credit_for_all_of_it_is_cut() {
        let mut sender = Credit::new(INITIAL);
        sender.granted(4 << 20);
        let pushed: Vec<u64> = (0..6).map(|_| sender.spend_push(2 << 20, 256 << 10, 1 << 20)).collect();
        assert_eq!(pushed, [1 << 20, 1 << 20, 256 << 10, 256 << 10, 256 << 10, 256 << 10]);
        assert_eq!(sender.spend_push(300 << 10, 256 << 10, 1 << 20), 300 << 10, "what fits is not cut");
        while sender.spend_push(2 << 20, 256 << 10, 1 << 20) > 0 {}
        assert!(sender.spend(100 << 10), "the other half is left to small messages");
    }
}
