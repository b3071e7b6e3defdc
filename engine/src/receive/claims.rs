//! Messages that are found now and received later, by whoever found them and nobody else (MPI's matching
//! probe).

use crate::collect::matching::Unexpected;
use crate::collect::request::{Context, Envelope, Error, Source, TagMatch};
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::{PeerId, RegionId, RequestId};
use crate::protocol::regions::is_here;
use crate::protocol::{Recv, Request};
use alloc::vec::Vec;

/// A message that was claimed: no receive gets it but [`Engine::recv_claimed`], once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    name: u64,
    /// The names and the length of the message.
    pub envelope: Envelope,
}

impl Engine {
    /// Claims the message that a receive with these names would get now. A claim that is never received
    /// keeps its message, and the credit that it took, as long as the engine.
    pub fn claim(&mut self, from: Source, context: Context, tag: TagMatch) -> Option<Claim> {
        let place = self.receives.matching.peek(from, context, tag)?;
        let envelope = self.receives.matching.unexpected(place)?.envelope;
        let name = self.receives.claimed.insert(self.receives.matching.take(place)?);
        Some(Claim { name, envelope })
    }

    /// Receives a message that was claimed. It ends as [`Engine::recv`] does; with [`Error::PeerLost`] too
    /// if the claim was received before.
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

    /// Whether a claimed message lies in this receive region of our own.
    pub(crate) fn claims(&self, stored: RegionId) -> bool {
        self.receives.claimed.iter().any(|(_, message)| message.lies_in(stored))
    }

    /// The peer is gone: messages that it had only announced will not come.
    pub(crate) fn forget_claims(&mut self, peer: PeerId) {
        let here = |message: &Envelope, stored| is_here(&self.regions, message, stored);
        let lost = |message: &Unexpected| message.envelope.peer == peer && !message.is_here(here);
        let lost: Vec<u64> =
            self.receives.claimed.iter().filter(|(_, m)| lost(m)).map(|(name, _)| name).collect();
        lost.into_iter().for_each(|name| drop(self.receives.claimed.remove(name)));
    }
}
