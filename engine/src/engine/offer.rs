//! Single copies (`Protocol::SingleCopy`): messages that stay where they are until their receiver has
//! copied them.
//!
//! A message is offered; at one of its next polls the rail reports that it was taken or declined. Until then
//! nothing else leaves to that peer: other messages wait in the window, and a message that was declined keeps
//! its place in its flow and goes another way.

use super::Engine;
use super::lane::Lane;
use super::leaving::{Leaving, Refused, Submitted, To};
use crate::Error;
use crate::collect::request::{EagerSend, Envelope, Hints, Request};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId};
use alloc::boxed::Box;

/// A message that was offered.
#[derive(Debug)]
pub(super) struct Offered {
    leaving: Leaving,
    to: To,
    data: Segments,
    hints: Hints,
    request: RequestId,
    /// The short ways to the peer, which are closed meanwhile.
    pub(super) lane: Option<Lane>,
    pub(super) several: Option<u64>,
}

impl Offered {
    /// The rail that offers it.
    #[inline]
    pub(super) fn rail(&self) -> RailId {
        self.leaving.rail()
    }

    /// Whether this is what a rail reports about.
    #[inline]
    pub(super) fn is(&self, rail: RailId, number: u32) -> bool {
        (self.rail(), self.leaving.number()) == (rail, number)
    }
}

impl Engine {
    /// Whether a message to this peer waits to be copied by it, or to be declined: in some microseconds, for
    /// which it pays to look at the rail all the time.
    #[inline]
    pub fn is_offering(&self, to: PeerId) -> bool {
        self.peer(to).is_some_and(|peer| peer.offered.is_some())
    }

    /// A rail has offered a message.
    pub(super) fn offered(&mut self, leaving: &Leaving, to: &To, data: &Segments, hints: Hints) -> Submitted {
        let envelope = Envelope { peer: to.0, context: to.1, tag: to.2, len: data.len(), seq: leaving.seq() };
        let request = RequestId(self.requests.insert(Request::Eager(EagerSend::new(envelope, false))));
        let submitted = Submitted::Request(request);
        let peer = self.peers.get_mut(to.0.0 as usize).and_then(|peer| peer.as_deref_mut());
        // Another thread may have found meanwhile that the peer is gone.
        let Some(peer) = peer.filter(|peer| !peer.is_gone()) else {
            self.complete(request, Err(Error::PeerLost(to.0)));
            return submitted;
        };
        if let Some(link) = peer.link_mut(leaving.rail()) {
            link.is_offering = true;
        }
        let (lane, several) = (peer.lane.take(), peer.several.take());
        let (leaving, to, data) = (*leaving, *to, data.clone());
        peer.offered = Some(Box::new(Offered { leaving, to, data, hints, request, lane, several }));
        submitted
    }

    /// The receiver has copied what was offered.
    pub(super) fn on_taken(&mut self, from: PeerId) {
        let Some(offered) = self.end_offer(from) else { return };
        let Offered { leaving, to, data, request, .. } = *offered;
        self.injected(&leaving, to.0, data.len());
        self.entry_left(None, request);
    }

    /// The receiver does not copy what was offered: it leaves in another way.
    pub(super) fn on_declined(&mut self, rail: RailId, from: PeerId, number: u32) {
        if self.peer(from).is_some_and(|peer| peer.offered.as_ref().is_some_and(|o| o.is(rail, number))) {
            self.send_declined(from);
        }
    }

    /// The same where the link is gone.
    pub(super) fn send_declined(&mut self, to: PeerId) {
        let Some(offered) = self.end_offer(to) else { return };
        let Offered { leaving, to, data, hints, request, .. } = *offered;
        if let Some(receipts) = &mut self.receipts {
            receipts.forget(request);
        }
        let refused = Refused { request: Some(request), ..leaving.refused() };
        self.send_as(to, data, hints, Some(refused));
    }

    /// Opens the short ways again, and the window to the rails.
    fn end_offer(&mut self, to: PeerId) -> Option<Box<Offered>> {
        let peer = self.peers.get_mut(to.0 as usize).and_then(|peer| peer.as_deref_mut())?;
        let offered = peer.offered.take()?;
        (peer.lane, peer.several) = (offered.lane, offered.several);
        if let Some(link) = peer.link_mut(offered.rail()) {
            link.is_offering = false;
        }
        if !peer.has_nothing() {
            self.make_ready(to);
        }
        Some(offered)
    }
}
