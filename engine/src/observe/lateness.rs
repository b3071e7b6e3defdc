//! Measurements of how long large messages to a peer wait for its receives ([`crate::observe::late`]), and
//! the schedule of probes.

use crate::clock::{Duration, Instant};
use crate::profile::estimate::mean::Weight;

/// Eager messages between two probes, at first and at most. A receiver that has become timely is detected
/// after as many; the probes of one that stays late cost a sixteenth of the gain at first, and a thousandth
/// later.
const FIRST: u32 = 16;
const MOST: u32 = 1024;

/// Waits of large messages to a peer, and the eager messages sent to avoid them.
#[derive(Debug)]
pub(crate) struct Lateness {
    /// Wait for the answer to a request to send, beyond a handshake, in nanoseconds.
    answer_ns: u64,
    /// Wait for the report that it has everything, beyond the time of the rails.
    end_ns: u64,
    /// Messages above the eager limit sent eagerly since the last rendezvous.
    eager: u32,
    /// Number of these messages after which the next one uses rendezvous as a probe.
    pause: u32,
    /// The user was told that credit is insufficient.
    pub(crate) is_told: bool,
    /// Messages that the peer may read and has not yet read.
    pub(crate) unread: u32,
    /// When it read the last one.
    pub(crate) read_at: Instant,
    /// Wait of the last message that it read, in nanoseconds.
    read_wait_ns: u64,
    /// It sent a Cts for a message that it could have read: its system does not allow reading.
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
    /// Returns the expected wait of the next large message; `invited`: its receive is known to be posted.
    pub(crate) fn wait_ns(&self, invited: bool) -> u64 {
        if invited { self.end_ns } else { self.answer_ns.saturating_add(self.end_ns) }
    }

    /// Returns when the receiver is expected to look for a message that is sent now: after the longer one of
    /// the measured waits, for an answer and for the report of the end.
    pub(crate) fn looks_at(&self, now: Instant) -> Instant {
        now + Duration::from_ns(self.answer_ns.max(self.end_ns))
    }

    /// Whether the next message uses rendezvous in any case, because enough were sent eagerly.
    pub(crate) fn is_probe_due(&self) -> bool {
        self.eager >= self.pause
    }

    /// Whether the next message would wait for its receiver longer than eager data costs, and no probe is
    /// due; `invited`: its receive is known to be posted.
    pub(crate) fn prefers_eager(&self, invited: bool, cost_ns: impl FnOnce() -> u64) -> bool {
        let wait_ns = self.wait_ns(invited);
        wait_ns > 0 && !self.is_probe_due() && wait_ns > cost_ns()
    }

    /// Counts a message that is sent eagerly because the receiver is late.
    pub(crate) fn sent_eagerly(&mut self) {
        self.eager += 1;
    }

    /// Records that a message is sent that the peer may read.
    pub(crate) fn offers_to_read(&mut self) {
        self.unread += 1;
        self.used_rendezvous();
    }

    /// A message that was offered for reading will not be read.
    pub(crate) fn takes_back(&mut self) {
        self.unread = self.unread.saturating_sub(1);
    }

    /// Records that the peer read a message after this wait. A receiver that computes is late repeatedly; a
    /// single late read may be caused by the system, so the smaller of two waits counts.
    pub(crate) fn was_read(&mut self, wait_ns: u64) {
        let before_ns = core::mem::replace(&mut self.read_wait_ns, wait_ns);
        self.measured(Some(wait_ns.min(before_ns)), 0);
    }

    /// Records that a message uses rendezvous, which measures the wait.
    pub(crate) fn used_rendezvous(&mut self) {
        if self.is_probe_due() {
            self.eager = 0;
        }
    }

    /// Returns how long acknowledgements of eager messages may wait for the receiver; zero if all messages
    /// use rendezvous, so that the receiver has answered before.
    #[inline]
    pub(crate) fn hidden_ns(&self) -> u64 {
        if self.eager > 0 { self.answer_ns } else { 0 }
    }

    /// Adds the waits of a message: for its answer, if it used rendezvous and nothing else was in flight,
    /// and for the report of its end. Each message counts as much as all before it, since receivers change
    /// with the phases of a program. The pause between probes grows while the receiver stays late.
    pub(crate) fn measured(&mut self, answer_ns: Option<u64>, end_ns: u64) {
        let usual_ns = self.wait_ns(answer_ns.is_none());
        let is_late_again = usual_ns > 0 && answer_ns.unwrap_or(0).saturating_add(end_ns) >= usual_ns / 2;
        self.pause = if is_late_again { (2 * self.pause).min(MOST) } else { FIRST };
        self.end_ns = Weight::Half.mean(self.end_ns, end_ns);
        if let Some(answer_ns) = answer_ns {
            self.answer_ns = Weight::Half.mean(self.answer_ns, answer_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_receivers_are_probed_ever_less_until_they_are_timely() {
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
        assert!(lateness.wait_ns(true) < 10_000, "a receiver that was late once is soon timely again");
    }

    #[test]
    fn an_rtr_avoids_only_the_wait_for_the_answer() {
        let mut lateness = Lateness::default();
        lateness.measured(Some(800_000), 0);
        assert_eq!((lateness.wait_ns(false), lateness.wait_ns(true)), (400_000, 0));
        // A message invited by Rtr has no wait for an answer.
        lateness.measured(None, 200_000);
        assert_eq!((lateness.wait_ns(false), lateness.wait_ns(true)), (500_000, 100_000));
    }
}
