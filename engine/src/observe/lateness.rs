//! How long large messages to a peer wait for its receives ([`crate::observe::late`]), and how often that
//! is measured.

use crate::clock::Instant;

/// Eager messages from one that asks to the next, at first and at most. A receiver that has become timely
/// is found out after as many; the probes of one that stays late cost a sixteenth of what is gained at
/// first, and a thousandth later.
const FIRST: u32 = 16;
const MOST: u32 = 1024;

/// What large messages to a peer wait for, and what went without asking because of it.
#[derive(Debug)]
pub(crate) struct Lateness {
    /// Until the receiver answers a request to send, beyond a handshake, in nanoseconds.
    answer_ns: u64,
    /// Until it says that it has everything, beyond what the rails take.
    end_ns: u64,
    /// Messages above the eager limit that went without asking since one has asked.
    eager: u32,
    /// After this number of them the next one asks.
    pause: u32,
    /// The user knows that there is not enough credit.
    pub(crate) is_told: bool,
    /// Messages that the peer may read and has not read.
    pub(crate) unread: u32,
    /// When it has read the last one.
    pub(crate) read_at: Instant,
    /// How long the last one that it has read had waited, in nanoseconds.
    read_wait_ns: u64,
    /// It has asked for a message that it could have read: the system does not let it.
    pub(crate) declines_reads: bool,
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness {
            answer_ns: 0,
            end_ns: 0,
            eager: 0,
            pause: FIRST,
            is_told: false,
            unread: 0,
            read_at: Instant::default(),
            read_wait_ns: 0,
            declines_reads: false,
        }
    }
}

impl Lateness {
    /// How long the next large message would wait; `invited`: its receive is known to be posted.
    pub(crate) fn wait_ns(&self, invited: bool) -> u64 {
        if invited { self.end_ns } else { self.answer_ns.saturating_add(self.end_ns) }
    }

    /// Whether the next message asks, whatever is known, because enough went without asking.
    pub(crate) fn is_probe_due(&self) -> bool {
        self.eager >= self.pause
    }

    /// A message that would have asked, had the receiver been timely, goes without asking.
    pub(crate) fn unasked(&mut self) {
        self.eager += 1;
    }

    /// A message is sent that the peer may read.
    pub(crate) fn offers_to_read(&mut self) {
        self.unread += 1;
        self.asks();
    }

    /// A message that was offered for reading will not be read.
    pub(crate) fn takes_back(&mut self) {
        self.unread = self.unread.saturating_sub(1);
    }

    /// A message was read that had waited this long. A receiver that computes is late again and again; once
    /// may be the system's doing.
    pub(crate) fn was_read(&mut self, wait_ns: u64) {
        let before_ns = core::mem::replace(&mut self.read_wait_ns, wait_ns);
        self.measured(Some(wait_ns.min(before_ns)), 0);
    }

    /// A message asks, and so tells whether the receiver is late.
    pub(crate) fn asks(&mut self) {
        if self.is_probe_due() {
            self.eager = 0;
        }
    }

    /// For how long acknowledgements of what goes without asking may wait for the receiver; zero: everything
    /// asks, so that the receiver has answered before.
    #[inline]
    pub(crate) fn hidden_ns(&self) -> u64 {
        if self.eager > 0 { self.answer_ns } else { 0 }
    }

    /// A message has waited for the answer for `answer_ns`, if it has asked and nothing else was under way,
    /// and for the news of its end. It counts as much as all before it: receivers change with the phases of a
    /// program. The pause grows while they agree.
    pub(crate) fn measured(&mut self, answer_ns: Option<u64>, end_ns: u64) {
        let usual_ns = self.wait_ns(answer_ns.is_none());
        let is_late_again = usual_ns > 0 && answer_ns.unwrap_or(0).saturating_add(end_ns) >= usual_ns / 2;
        self.pause = if is_late_again { (2 * self.pause).min(MOST) } else { FIRST };
        self.end_ns = self.end_ns / 2 + end_ns / 2;
        if let Some(answer_ns) = answer_ns {
            self.answer_ns = self.answer_ns / 2 + answer_ns / 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_receivers_are_probed_less_and_less_and_timely_ones_at_once_again() {
        let mut lateness = Lateness::default();
        let late = core::array::from_fn::<_, 9, _>(|_| {
            lateness.measured(Some(500), 2_000_000);
            lateness.pause
        });
        assert_eq!(late, [16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
        assert!(lateness.wait_ns(true) > 1_990_000);
        lateness.measured(Some(0), 0);
        assert_eq!(lateness.pause, FIRST);
        (0..8).for_each(|_| lateness.measured(Some(0), 0));
        assert!(lateness.wait_ns(true) < 10_000, "a receiver that was late once is forgiven");
    }

    #[test]
    fn an_invitation_spares_the_wait_for_the_answer_only() {
        let mut lateness = Lateness::default();
        lateness.measured(Some(800_000), 0);
        assert_eq!((lateness.wait_ns(false), lateness.wait_ns(true)), (400_000, 0));
        // An invited message has asked nothing.
        lateness.measured(None, 200_000);
        assert_eq!((lateness.wait_ns(false), lateness.wait_ns(true)), (500_000, 100_000));
    }
}
