//! Copies of sends whose program needs their memory: a blocking one whose receiver has it late
//! ([`crate::protocol::early`]), or one that the program has cancelled. A cancelled one ends without a
//! receive that matches it (MPI 5.0, 3.8.4), and its message arrives all the same when there is one.
//!
//! A large message that nobody has asked for yet is copied to memory of the engine's own, and the request
//! ends for the application while the send goes on under its name ([`Kept::Here`]). It is copied when no
//! rail holds a chunk of it. Memory that the receiver may read is asked back (Reclaim) before it is copied;
//! the receiver answers unless it has begun to read, and then the Fin comes. A synchronous small message ends
//! when its memory is free. What the receiver has asked for goes on as it is: its receive is there.
//!
//! When the peer is gone, the send is dropped.

use crate::collect::matching::{Arrived, Comes};
use crate::collect::request::{Envelope, Error};
use crate::engine::Engine;
use crate::packet::{PeerId, RequestId};
use crate::protocol::rendezvous::{Kept, SendState};
use crate::protocol::{Protocol, Request};
use nmad_wire::{Frame, Reclaim};

impl Engine {
    /// A send shall end although no receive may ever match it.
    #[cold]
    pub(crate) fn keep(&mut self, request: RequestId) {
        match self.requests.get_mut(request.0) {
            Some(Request::Eager(send)) if send.wants_fin => drop(self.eager_matched(request)),
            Some(Request::Large(send)) if matches!(send.kept, Kept::No) => {
                send.kept = Kept::Wanted;
                match send.state {
                    SendState::Readable { .. } => self.reclaim(request),
                    _ => self.consider_keeping(request),
                }
            }
            _ => {}
        }
    }

    /// Copies the data of a send that shall end, if nobody else uses it.
    pub(crate) fn consider_keeping(&mut self, request: RequestId) {
        let Some(Request::Large(send)) = self.requests.get(request.0) else { return };
        let is_unasked = matches!(send.state, SendState::Held | SendState::Asked | SendState::Ahead { .. });
        let is_free = !send.has_blocks_in_window() && send.at_rails == 0;
        if is_unasked && is_free && matches!(send.kept, Kept::Wanted) {
            self.keep_copy(request, false);
        }
    }

    /// Copies the data of a send that no rail holds, and ends its request for the application.
    pub(crate) fn keep_copy(&mut self, request: RequestId, is_early: bool) {
        let Engine { requests, spare, ended, untold, .. } = self;
        let Some(Request::Large(send)) = requests.get_mut(request.0) else { return };
        let buffer = spare.take(send.data.len() as usize);
        let own = buffer.segments();
        own.copy_from(&send.data);
        send.data = own;
        send.kept = Kept::Here { buffer, is_told: false, is_early };
        *untold += 1;
        ended.push(request);
    }

    /// The end of a kept send, if it was not reported yet.
    #[cold]
    pub(crate) fn take_kept(&mut self, request: RequestId) -> Option<Result<Envelope, Error>> {
        let Some(Request::Large(send)) = self.requests.get_mut(request.0) else { return None };
        match &mut send.kept {
            Kept::Here { is_told, .. } if !*is_told => *is_told = true,
            _ => return None,
        }
        self.untold -= 1;
        Some(Ok(send.envelope))
    }

    /// A kept send is over, however it ended: the application was told, or will be, that it has its memory.
    #[cold]
    pub(crate) fn end_kept(&mut self, request: RequestId) {
        let Some(place) = self.requests.get_mut(request.0) else { return };
        let Request::Large(send) = place else { return };
        let kept = core::mem::replace(&mut send.kept, Kept::No);
        let Kept::Here { buffer, is_told, is_early } = kept else { return };
        let envelope = send.envelope;
        if is_early {
            self.early.bytes -= send.data.len();
        }
        if is_told {
            self.requests.remove(request.0);
        } else {
            *place = Request::Ended(Ok(envelope));
        }
        self.unused.push(buffer);
        self.give_unused();
    }

    /// Memory of sends that are over is used again, when no rail may still use it.
    pub(crate) fn give_unused(&mut self) {
        if self.closing == 0 {
            self.unused.drain(..).for_each(|buffer| self.spare.give(buffer));
        }
    }

    /// Asks the receiver for the memory of a message that it may read. A request to send that is still in the
    /// window may be behind this: it asks again when it has left.
    #[cold]
    pub(crate) fn reclaim(&mut self, request: RequestId) {
        let Some(Request::Large(send)) = self.requests.get(request.0) else { return };
        self.tell_reclaim(send.envelope.peer, Reclaim { request: request.0, is_free: false });
    }

    fn tell_reclaim(&mut self, to: PeerId, reclaim: Reclaim) {
        let Some(peer) = self.peer_mut(to) else { return };
        peer.control(&Frame::Reclaim(reclaim));
        self.make_ready(to);
    }

    /// The sender of a message asks for its memory, which is not read if no receive has matched it yet. Such
    /// messages are few ([`crate::protocol::read`]), and rarely cancelled: all unexpected ones are looked
    /// through.
    #[cold]
    pub(crate) fn on_reclaim(&mut self, from: PeerId, request: u64) {
        if self.will_not_read(from, request) {
            self.tell_reclaim(from, Reclaim { request, is_free: true });
        }
    }

    /// A message that might be read is asked for instead; false: nobody waits to read it.
    fn will_not_read(&mut self, from: PeerId, request: u64) -> bool {
        let Engine { peers, receives, .. } = self;
        let peer = peers.get_mut(from);
        let early = peer.into_iter().flat_map(|peer| peer.flows.early_mut());
        let early = early.map(|(theirs, body)| (from, theirs, body));
        let claimed = receives.claimed.iter_mut();
        let claimed = claimed.map(|message| (message.envelope.peer, message.request, &mut message.body));
        let all = receives.matching.bodies_mut().chain(claimed).chain(early);
        for (_, _, body) in all.filter(|&(peer, theirs, _)| (peer, theirs) == (from, request)) {
            if let Arrived::Rts { body: body @ Comes::Read(_), .. } = body {
                *body = Comes::Asked;
                return true;
            }
        }
        false
    }

    /// The receiver does not read the memory of a message that was offered to it.
    #[cold]
    pub(crate) fn on_reclaimed(&mut self, from: PeerId, request: u64) {
        let Some(Request::Large(send)) = self.requests.get_mut(request) else { return };
        if send.envelope.peer != from || !send.kept.is_reclaimed(send.state) {
            return;
        }
        send.state = SendState::Asked;
        send.protocol = Protocol::Rendezvous;
        if let Some(peer) = self.peer_mut(from) {
            peer.lateness.takes_back();
        }
        self.consider_keeping(RequestId(request));
    }
}
