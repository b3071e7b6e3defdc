//! Matched probe (MPI_Mprobe): a message is found now and received later, only by the handle that the probe
//! returned.

use crate::collect::matching::Unexpected;
use crate::collect::request::{Context, Envelope, Error, Source, TagMatch};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::{PeerId, RegionId, RequestId};
use crate::protocol::regions::is_here;
use crate::protocol::{Recv, Request};
use alloc::vec::Vec;

/// A message found by a matched probe: only [`Engine::recv_claimed`] receives it, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    name: u64,
    /// Envelope of the message.
    pub envelope: Envelope,
}

impl Engine {
    /// Finds the message that such a receive would match now, and reserves it. If it is never received, the
    /// engine keeps the message and its credit.
    pub fn claim(&mut self, from: Source, context: Context, tag: TagMatch) -> Option<Claim> {
        let place = self.receives.matching.peek(from, context, tag)?;
        let envelope = self.receives.matching.unexpected(place)?.envelope;
        let name = self.receives.claimed.insert(self.receives.matching.take(place)?);
        Some(Claim { name, envelope })
    }

    /// Receives a message that was found by [`Engine::claim`]. The request ends like that of
    /// [`Engine::recv`]; with [`Error::PeerLost`] also if the message was received before.
    pub fn recv_claimed(&mut self, claim: Claim, into: Segments) -> RequestId {
        let Envelope { peer, context, tag, .. } = claim.envelope;
        let names = (Source::Peer(peer), context, TagMatch::Exact(tag));
        let request = RequestId(self.requests.insert(Request::Recv(Recv::new(into, names))));
        match self.receives.claimed.remove(claim.name) {
            Some(message) => self.deliver_unexpected(request, message),
            None => self.fail_request(request, Error::PeerLost(peer)),
        }
        request
    }

    /// Whether a reserved message is stored in this receive region of the engine.
    pub(crate) fn claims(&self, stored: RegionId) -> bool {
        self.receives.claimed.iter().any(|(_, message)| message.lies_in(stored))
    }

    /// Drops reserved messages of a lost peer whose data has not arrived.
    pub(crate) fn forget_claims(&mut self, peer: PeerId) {
        let here = |message: &Envelope, stored| is_here(&self.regions, message, stored);
        let lost = |message: &Unexpected| message.envelope.peer == peer && !message.is_here(here);
        let lost: Vec<u64> =
            self.receives.claimed.iter().filter(|(_, m)| lost(m)).map(|(name, _)| name).collect();
        lost.into_iter().for_each(|name| drop(self.receives.claimed.remove(name)));
    }
}
