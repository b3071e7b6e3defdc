//! Byte credits: how much eager data a peer may have to keep without a receive.
//!
//! Sender and receiver charge each eager message the same. The receiver tells the sum that may be reached;
//! a sender that would pass it falls back to rendezvous, so nothing ever blocks and unexpected data is
//! bounded. Envelopes of rendezvous requests are not charged: MPI needs them all to match.

/// What a message costs besides its data: about what its entry takes.
const OVERHEAD: u64 = 128;
/// Before the receiver has said anything, both sides assume this, in bytes.
pub(crate) const INITIAL: u64 = 256 << 10;

/// Least step from one announced limit to the next: such a message goes the long way.
fn worth_telling(budget: u64) -> u64 {
    (budget / 4).max(INITIAL / 2)
}

/// Charge of an eager message of `len` bytes.
pub(crate) fn charge(len: u64) -> u64 {
    // What a peer says that it pushes may be any number.
    len.saturating_add(OVERHEAD)
}

/// Both directions of one peer.
#[derive(Debug)]
pub(crate) struct Credit {
    /// What we may have sent in all, and have.
    limit: u64,
    spent: u64,
    /// Bytes that the peer may send, that have arrived, and that were consumed.
    told: u64,
    received: u64,
    consumed: u64,
    /// No less than what the peer assumes initially.
    budget: u64,
    /// What follows from `told`: from how much consumed on a new limit is worth telling, and from how much
    /// received on the peer may soon have to stop. Each message asks both.
    owes_from: u64,
    short_from: u64,
}

impl Credit {
    pub(crate) fn new(budget: u64) -> Self {
        let budget = budget.max(INITIAL);
        let mut credit = Credit {
            limit: INITIAL,
            spent: 0,
            told: 0,
            received: 0,
            consumed: 0,
            budget,
            owes_from: 0,
            short_from: 0,
        };
        credit.tell(INITIAL);
        credit
    }

    fn tell(&mut self, limit: u64) {
        self.told = limit;
        // No limit is above the highest number: then there is nothing more to tell.
        let worth = limit.checked_add(worth_telling(self.budget));
        self.owes_from = worth.map_or(u64::MAX, |worth| worth.saturating_sub(self.budget));
        self.short_from = limit.saturating_add(1).saturating_sub(self.budget / 2);
    }

    /// Whether there is enough for an eager message.
    #[inline]
    pub(crate) fn has(&self, len: u64) -> bool {
        self.spent + charge(len) <= self.limit
    }

    /// Spends for an eager message; false: not enough, use rendezvous.
    #[inline]
    pub(crate) fn spend(&mut self, len: u64) -> bool {
        let enough = self.has(len);
        if enough {
            self.spend_known(len);
        }
        enough
    }

    /// Spends for an eager message for which there is enough.
    #[inline]
    pub(crate) fn spend_known(&mut self, len: u64) {
        debug_assert!(self.has(len));
        self.spent += charge(len);
    }

    /// Credit that was spent for a message that has not left after all.
    pub(crate) fn give_back(&mut self, len: u64) {
        self.spent -= charge(len);
    }

    /// Spends for the part of a large message of `len` bytes that goes ahead of any answer, and returns how
    /// many bytes that is: all of it or, if that is more, `most`; or if that is more than half of what is
    /// left, `part` of it; nothing if even that is too much. The other half is left to small messages.
    pub(crate) fn spend_push(&mut self, len: u64, part: u64, most: u64) -> u64 {
        let left = (self.limit.saturating_sub(self.spent) / 2).saturating_sub(OVERHEAD);
        let bytes = [len.min(most), len.min(part)].into_iter().find(|bytes| *bytes <= left).unwrap_or(0);
        if bytes > 0 && self.spend(bytes) { bytes } else { 0 }
    }

    /// Whether a message of `len` bytes may be pushed, and `more` as long as it after that; half of what is
    /// left is for small ones.
    #[inline]
    pub(crate) fn has_for_push(&self, len: u64, more: u64) -> bool {
        charge(len).saturating_mul(1 + more) <= self.limit.saturating_sub(self.spent) / 2
    }

    /// The same for a receiver that is late. A message that waits for it costs more than credit that other
    /// messages lack, so small ones keep only as much as a peer may spend at first.
    pub(crate) fn has_for_late(&self, len: u64) -> bool {
        let left = self.limit.saturating_sub(self.spent);
        charge(len) <= left - INITIAL.min(left / 2)
    }

    /// The peer has room up to `limit`.
    pub(crate) fn granted(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// An eager message has arrived; false if the peer was not granted that much.
    #[inline]
    pub(crate) fn received(&mut self, len: u64) -> bool {
        self.received = self.received.saturating_add(charge(len));
        self.received <= self.told
    }

    /// A message of `len` bytes is no longer kept.
    #[inline]
    pub(crate) fn consume(&mut self, len: u64) {
        self.consumed += charge(len);
    }

    /// Whether the peer may soon have to stop: then a new limit does not wait for a packet to ride on.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.received >= self.short_from
    }

    /// Whether a new limit is worth telling: enough was consumed since the last time, or the budget is larger
    /// than what peers assume initially.
    #[inline]
    pub(crate) fn owes_limit(&self) -> bool {
        self.consumed >= self.owes_from
    }

    /// The new limit, when it is worth telling.
    #[inline]
    pub(crate) fn next_limit(&mut self) -> Option<u64> {
        if !self.owes_limit() {
            return None;
        }
        self.tell(self.consumed.saturating_add(self.budget));
        Some(self.told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn what_follows_from_the_limit_is_what_it_was() {
        for budget in [INITIAL, INITIAL + 1, 3 * INITIAL, 1 << 40, u64::MAX] {
            let mut credit = Credit::new(budget);
            for step in 0..3000 {
                let now = credit.consumed.saturating_add(credit.budget);
                assert_eq!(credit.owes_limit(), now.saturating_sub(credit.told) >= worth_telling(budget));
                let left = credit.told.saturating_sub(credit.received);
                assert_eq!(credit.is_short(), left < credit.budget / 2);
                if !credit.received(1000) || step % 7 == 0 {
                    credit.next_limit();
                }
                credit.consume(1000);
            }
        }
    }

    #[test]
    fn a_sender_stops_at_the_limit_and_goes_on_when_told() {
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
    fn messages_to_a_late_receiver_leave_some_credit_to_small_ones() {
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
    fn a_whole_chunk_goes_ahead_where_there_is_credit_for_it_and_else_a_part() {
        let mut sender = Credit::new(INITIAL);
        sender.granted(4 << 20);
        let pushed: Vec<u64> = (0..6).map(|_| sender.spend_push(2 << 20, 256 << 10, 1 << 20)).collect();
        assert_eq!(pushed, [1 << 20, 1 << 20, 256 << 10, 256 << 10, 256 << 10, 256 << 10]);
        assert_eq!(sender.spend_push(300 << 10, 256 << 10, 1 << 20), 300 << 10, "what fits is not cut");
        while sender.spend_push(2 << 20, 256 << 10, 1 << 20) > 0 {}
        assert!(sender.spend(100 << 10), "the other half is left to small messages");
    }
}
