//! Timers of lossy rails: looked at when one of them may be due. An acknowledgement that comes with a message
//! for which a thread waits is noted after the thread has it.

use super::Engine;
use super::plain::Expected;
use crate::clock::Instant;

impl Engine {
    /// Takes note of an acknowledgement that came with a message for which a thread waited.
    #[inline]
    pub(super) fn hear(&mut self) {
        if self.unheard.is_some() {
            self.take_note();
        }
    }

    #[inline(never)]
    fn take_note(&mut self) {
        if let Some((came_at, rail, from, ack)) = self.unheard.take() {
            self.on_ack(came_at, rail, from, ack, 0);
        }
    }

    /// Whether somebody expects a message that has come, and nothing waits for a rail.
    #[inline]
    pub(crate) fn is_met(&self) -> bool {
        matches!(self.expected, Expected::Met(_)) && self.ready.is_empty()
    }

    /// Something happens: timers are to be looked at anew.
    #[inline]
    pub(super) fn stir(&mut self) {
        self.rests_until = Instant::default();
        self.busy_until = Instant::default();
    }

    /// Whether no lossy link needs anything now, nor has anything to be sent; until when, is remembered.
    pub(super) fn timers_rest(&mut self, now: Instant) -> bool {
        self.hear();
        if !self.ready.is_empty() {
            return false;
        }
        let mut until = Instant::from_ns(u64::MAX);
        for &(peer, rail) in &self.timed {
            let link = self.peer(peer).and_then(|peer| peer.link(rail)).filter(|link| link.is_up());
            let Some(link) = link else { continue };
            let Some(rests) = link.rests_until(now) else { return false };
            until = until.min(rests);
        }
        self.rests_until = until;
        true
    }
}
