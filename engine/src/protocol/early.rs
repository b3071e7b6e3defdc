//! Blocking sends that end before their receiver has them (P5 section 5.1).
//!
//! A program that sends to several receivers one after the other waits for the answer of each, and all waits
//! add up. So the data of such a send may be copied to memory of the engine's own, as that of a cancelled one
//! ([`crate::protocol::keep`]): the call returns, and the message goes on beside the next ones.
//!
//! The data are copied at once if copying is predicted to take less time than the remaining wait. That is
//! estimated from
//! - the measured wait, if the receiver is late ([`crate::observe::lateness`]);
//! - the time of a handshake, if the program sends several messages in a row: its last sends followed each
//!   other within that time. A program that waits for the receiver anyway, as in a ping-pong, would gain
//!   nothing, nor would one whose receivers usually invite its messages ([`crate::protocol::rtr`]).
//!
//! Otherwise the call waits as long as this estimate and a copy take, and copies then: the total is at most
//! twice that of the better choice.
//!
//! Once the rails have sent all of it, a send only waits until its receiver has it, as its data may have to
//! be sent again if a rail dies. The rails, or the kernel, may still need long for that. The same rule
//! decides, with the time until the message is predicted to arrive. Over lossy rails it waits, since lost
//! chunks are sent again from its memory.
//!
//! The copies have at most [`Config::early`](crate::Config::early) bytes. Only sends that ask their receiver
//! (rendezvous) or that it has invited end early: a synchronous send waits for its receiver's answer, one
//! that the receiver reads from this process's memory stays where it is, and one that is pushed needs no
//! answer.

use crate::clock::{Duration, Instant};
use crate::engine::peer::Peer;
use crate::engine::{Engine, Inspect, Setup};
use crate::packet::RequestId;
use crate::protocol::Request;
use crate::protocol::rendezvous::{Kept, LargeSend, SendState};
use crate::transfer::link::Link;

/// When a blocking send may end before its receiver has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyEnd {
    /// It does not: the call waits for its end.
    Never,
    /// After this time, with a copy of its data ([`Engine::end_early`]).
    After(Duration),
    /// Perhaps once all of it has left ([`Inspect::has_left`]); ask again then.
    OnceItLeft,
}

impl LargeSend {
    /// Whether nothing of it has been asked for or has left but its request to send.
    fn is_unanswered(&self) -> bool {
        matches!(self.state, SendState::Held | SendState::Asked)
            && !self.hints.synchronous
            && !self.has_blocks_in_window()
            && self.at_rails == 0
    }

    /// Whether it will wait for its receiver's news once the rails have sent all of it, and its memory is
    /// free then: over lossy rails, lost chunks are sent again from there.
    fn may_leave(&self, peer: &Peer) -> bool {
        self.wants_fin && self.grant().is_some() && peer.links.iter().all(|link| !link.lossy)
    }

    /// Whether the rails have sent all of it, and its receiver has not said yet that it is there.
    fn has_left(&self) -> bool {
        matches!(self.state, SendState::Granted { grant, ahead } if self.sent >= grant.len.max(ahead))
            && self.wants_fin
            && self.at_rails == 0
    }

    /// Whether its data may be copied, and its call may end.
    fn may_end_early(&self, peer: &Peer) -> bool {
        matches!(self.kept, Kept::No) && (self.is_unanswered() || self.has_left() && self.may_leave(peer))
    }
}

impl Engine {
    /// Returns when a blocking call for this send may end it with [`Engine::end_early`].
    #[cold]
    pub fn early_end(&mut self, request: RequestId, now: Instant) -> EarlyEnd {
        let Engine { requests, peers, early, config, .. } = self;
        let Some(Request::Large(send)) = requests.get(request.0) else { return EarlyEnd::Never };
        let len = send.data.len();
        if early.bytes + len > config.early || !matches!(send.kept, Kept::No) {
            return EarlyEnd::Never;
        }
        let Some(peer) = peers.get(send.envelope.peer) else { return EarlyEnd::Never };
        // Half of both copies: the receiver places the data directly.
        let copy_ns = peer.copies_ns(len) / 2;
        let after = |wait_ns, most_ns| if copy_ns < wait_ns { 0 } else { most_ns + copy_ns };
        let after_ns = if send.has_left() && send.may_leave(peer) {
            let wait_ns = send.timing.due.since(now).as_ns();
            after(wait_ns, wait_ns)
        } else if send.is_unanswered() {
            let handshake = |link: &Link| link.forecast.profile().handshake_ns();
            let Some(handshake_ns) = peer.used().map(|(_, link)| handshake(link)).min() else {
                return EarlyEnd::Never;
            };
            let is_row = early.begins(now, handshake_ns);
            let late_ns = peer.lateness.wait_ns(false);
            let asks = matches!(send.state, SendState::Asked);
            after(late_ns + if is_row && asks { handshake_ns } else { 0 }, handshake_ns + late_ns)
        } else if send.may_leave(peer) {
            return EarlyEnd::OnceItLeft;
        } else {
            return EarlyEnd::Never;
        };
        EarlyEnd::After(Duration::from_ns(after_ns))
    }

    /// Ends a send before its receiver has it, after copying its data; false: it goes on as it is, since its
    /// memory is in use.
    #[cold]
    pub fn end_early(&mut self, request: RequestId) -> bool {
        let Some(Request::Large(send)) = self.requests.get(request.0) else { return false };
        let len = send.data.len();
        let may = self.peers.get(send.envelope.peer).is_some_and(|peer| send.may_end_early(peer));
        // Other threads may have used the room since.
        if !may || self.early.bytes + len > self.config.early {
            return false;
        }
        self.early.bytes += len;
        self.keep_copy(request, true);
        true
    }

    /// Records that a blocking send ended that had to wait for its receiver.
    #[cold]
    pub fn ended_blocking(&mut self, now: Instant) {
        self.early.ended_at = now;
    }
}

impl Inspect<'_> {
    /// Whether the rails have sent all of this send, and its receiver has not said yet that it is there.
    #[cold]
    pub fn has_left(self, request: RequestId) -> bool {
        matches!(self.0.requests.get(request.0), Some(Request::Large(send)) if send.has_left())
    }

    /// Returns the bytes of sends that have ended early and are not yet with their receivers.
    pub fn early_bytes(self) -> u64 {
        self.0.early.bytes
    }
}

impl Setup<'_> {
    /// Sets [`Config::early`](crate::Config::early).
    pub fn limit_early(&mut self, bytes: u64) {
        self.0.config.early = bytes;
    }
}
