//! Blocking sends that end before their receiver answers (P5 section 5.1).
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
//! The copies have at most [`Config::early`](crate::Config::early) bytes. Only sends that ask their receiver
//! (rendezvous) end early: a synchronous send waits, one that the receiver reads from this process's memory
//! stays where it is, and one that is pushed needs no answer.

use crate::clock::{Duration, Instant};
use crate::engine::{Engine, Inspect, Setup};
use crate::packet::RequestId;
use crate::protocol::Request;
use crate::protocol::rendezvous::{Kept, LargeSend, SendState};
use crate::transfer::link::Link;

impl LargeSend {
    /// Whether nothing of it has been asked for or has left but its request to send.
    fn is_unanswered(&self) -> bool {
        matches!(self.state, SendState::Held | SendState::Asked)
            && matches!(self.kept, Kept::No)
            && !self.hints.synchronous
            && !self.has_blocks_in_window()
            && self.at_rails == 0
    }
}

impl Engine {
    /// Returns how long a blocking call waits for this send before [`Engine::end_early`]; `None`: until the
    /// send ends.
    #[cold]
    pub fn early_end_after(&mut self, request: RequestId, now: Instant) -> Option<Duration> {
        let Engine { requests, peers, early, config, .. } = self;
        let Some(Request::Large(send)) = requests.get(request.0) else { return None };
        let len = send.data.len();
        if early.bytes + len > config.early || !send.is_unanswered() {
            return None;
        }
        let peer = peers.get(send.envelope.peer)?;
        let handshake = |link: &Link| link.forecast.profile().handshake_ns();
        let handshake_ns = peer.used().map(|(_, link)| handshake(link)).min()?;
        // Half of both copies: the receiver places the data directly.
        let copy_ns = peer.copies_ns(len) / 2;
        let is_row = early.begins(now, handshake_ns);
        let late_ns = peer.lateness.wait_ns(false);
        let asks = matches!(send.state, SendState::Asked);
        let wait_ns = late_ns + if is_row && asks { handshake_ns } else { 0 };
        let after_ns = if copy_ns < wait_ns { 0 } else { handshake_ns + late_ns + copy_ns };
        Some(Duration::from_ns(after_ns))
    }

    /// Ends a send whose receiver has not answered, after copying its data; false: it goes on as it is.
    #[cold]
    pub fn end_early(&mut self, request: RequestId) -> bool {
        let Some(Request::Large(send)) = self.requests.get_mut(request.0) else { return false };
        let len = send.data.len();
        // Other threads may have used the room since.
        if !send.is_unanswered() || self.early.bytes + len > self.config.early {
            return false;
        }
        send.kept = Kept::Wanted;
        self.consider_keeping(request);
        if let Some(Request::Large(send)) = self.requests.get_mut(request.0)
            && let Kept::Here { is_early, .. } = &mut send.kept
        {
            *is_early = true;
            self.early.bytes += len;
        }
        true
    }

    /// Records that a blocking send ended that had to wait for its receiver.
    #[cold]
    pub fn ended_blocking(&mut self, now: Instant) {
        self.early.ended_at = now;
    }
}

impl Inspect<'_> {
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
