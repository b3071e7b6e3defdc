//! Blocking sends that end before their receiver answers (P5 section 5.1).
//!
//! A program that sends to several receivers one after the other waits for the answer of each, and all waits
//! add up. So the data of such a send may be copied to memory of the engine's own, as that of a cancelled one
//! ([`crate::protocol::keep`]): the call returns, and the message goes on beside the next ones.
//!
//! A copy is made once it takes less time than the rest of the wait, as far as that is known:
//! - the measured wait of a receiver that is late ([`crate::observe::lateness`]);
//! - the time of a handshake, if the program is in a phase of sends: its last sends followed each other
//!   within that time. A program that waits for the receiver anyway, as in a ping-pong, would gain nothing,
//!   nor would one whose receivers usually invite its messages ([`crate::protocol::rtr`]);
//! - beyond that, the time for which the send has waited too long already. So the wait and the copy cost at
//!   most twice what the better of both would have cost.
//!
//! The copies are limited to [`Config::early`](crate::Config::early) bytes. A synchronous send waits for its receiver, and one
//! that the receiver reads from this process's memory stays where it is.

use crate::clock::{Duration, Instant};
use crate::engine::{Engine, Inspect, Setup};
use crate::packet::RequestId;
use crate::protocol::Request;
use crate::protocol::rendezvous::{Kept, LargeSend, SendState};
use crate::transfer::link::Link;

/// Copies of sends that have ended for the application, and the phases of its blocking sends.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Bytes in copies.
    pub(crate) bytes: u64,
    /// When the last blocking send to an absent receiver ended.
    ended_at: Instant,
    /// Number of such sends that followed each other, up to the last one.
    sends: u32,
    /// The next send belongs to a phase, or is expected to begin one since the last phase had several.
    is_phase: bool,
}

impl Copies {
    /// A blocking send begins to wait for its receiver.
    fn begins(&mut self, now: Instant, handshake_ns: u64) {
        let follows = now.since(self.ended_at).as_ns() < handshake_ns;
        self.is_phase = follows || self.sends > 1;
        self.sends = if follows { self.sends.saturating_add(1) } else { 1 };
    }
}

impl LargeSend {
    /// Whether nothing of it has been asked for or has left but its request to send.
    fn is_unanswered(&self) -> bool {
        matches!(self.state, SendState::Held | SendState::Asked)
            && matches!(self.kept, Kept::No)
            && !self.hints.synchronous
            && !self.has_blocks_in_window()
    }
}

impl Engine {
    /// Returns how long a blocking call waits for the receiver of this send before
    /// [`Engine::end_early`]; `None`: until the send ends.
    #[cold]
    pub fn patience(&mut self, request: RequestId, now: Instant) -> Option<Duration> {
        let Engine { requests, peers, copies, config, .. } = self;
        let Some(Request::Large(send)) = requests.get(request.0) else { return None };
        let len = send.data.len();
        if copies.bytes + len > config.early || !send.is_unanswered() {
            return None;
        }
        let peer = peers.get(send.envelope.peer)?;
        let handshake = |link: &Link| link.forecast.profile().handshake_ns();
        let handshake_ns = peer.used().map(|(_, link)| handshake(link)).min()?;
        // The receiver does not copy: its receive is posted when it answers.
        let copy_ns = peer.copies_ns(len) / 2;
        copies.begins(now, handshake_ns);
        let late_ns = peer.lateness.wait_ns(false);
        let asks = matches!(send.state, SendState::Asked);
        let gain_ns = late_ns + if copies.is_phase && asks { handshake_ns } else { 0 };
        let patience_ns = if copy_ns < gain_ns { 0 } else { handshake_ns + late_ns + copy_ns };
        Some(Duration::from_ns(patience_ns))
    }

    /// Ends a send whose receiver has not answered, after copying its data; false: it goes on as it is.
    #[cold]
    pub fn end_early(&mut self, request: RequestId) -> bool {
        let Some(Request::Large(send)) = self.requests.get_mut(request.0) else { return false };
        if !send.is_unanswered() {
            return false;
        }
        send.kept = Kept::Wanted;
        self.consider_keeping(request);
        true
    }

    /// Records that a blocking send to a receiver that was absent at first has ended.
    #[cold]
    pub fn ended_blocking(&mut self, now: Instant) {
        self.copies.ended_at = now;
    }
}

impl Inspect<'_> {
    /// Returns the bytes of sends that have ended for the application and are not yet with their receivers.
    pub fn copied(self) -> u64 {
        self.0.copies.bytes
    }
}

impl Setup<'_> {
    /// Sets [`Config::early`](crate::Config::early).
    pub fn end_early(&mut self, bytes: u64) {
        self.0.config.early = bytes;
    }
}
