//! One-sided accesses to memory that peers have exposed: the network carries them out without code running
//! on the peer and without a packet.
//!
//! They have no sequence number on their link, so nothing reports the result of an access whose link is
//! lost: it may have been done, and a write may still be in flight. The access ends when the peer has
//! closed the link, too, which it reports over another rail, or over the same one when it is open again:
//! from then on it has no further effect, and the caller of a put or a get uses a message to the peer
//! instead. Whether an atomic operation was done stays unknown.

use crate::clock::Instant;
use crate::collect::request::{Context, Envelope, Error, Tag};
use crate::engine::{Engine, Inspect};
use crate::memory::Segments;
use crate::packet::{Key, PeerId, RailId, RequestId};
use crate::protocol::Request;
use crate::transfer::access::{Access, Act, Atomics, Came, Exposure, RemoteAccess};
use crate::transfer::link::{Link, State};
use crate::transfer::rail::Rail;
use alloc::vec::Vec;
use nmad_wire::Keys;

/// State of an access to memory of a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneSided {
    pub(crate) envelope: Envelope,
    /// The rail that carries it out.
    rail: RailId,
    /// The rail has lost the link, and the result is unknown.
    is_unknown: bool,
}

/// Context in the envelopes of accesses; no message uses it.
const NONE: Context = Context(u32::MAX);

impl Engine {
    /// Begins an access to memory that a peer has exposed, at address `at` of its process. The request
    /// succeeds when the access is complete here and at the peer; otherwise it ends with
    /// [`Error::AccessLost`] or [`Error::PeerLost`]. `None`: no rail can carry it out, and it needs a
    /// message.
    pub fn access(
        &mut self,
        now: Instant,
        to: PeerId,
        act: Act,
        (at, exposure): (u64, &Exposure),
        here: Segments,
    ) -> Option<RequestId> {
        let len = here.len();
        let (rail, key) = self.accessible(now, to, (act, len), exposure.keys_for(act))?;
        let envelope = Envelope { peer: to, context: NONE, tag: Tag(0), len, seq: 0 };
        let access = OneSided { envelope, rail, is_unknown: false };
        let request = RequestId(self.requests.insert(Request::OneSided(access)));
        let ns = self.peers.link(to, rail).map_or(0, |link| link.forecast.busy_ns(len));
        let rail = &mut self.rails[rail.index()];
        rail.give(now, to, ns);
        rail.counters.accesses += 1;
        rail.counters.access_bytes += len;
        rail.accesses.push(Access { to, request, act, at, key, here });
        self.has_errands = true;
        Some(request)
    }

    /// Returns the rail that would finish an access first. `None` also for accesses worth splitting over
    /// several rails, since a message does that.
    fn accessible(
        &mut self,
        now: Instant,
        to: PeerId,
        (act, len): (Act, u64),
        keys: &Keys,
    ) -> Option<(RailId, Key)> {
        self.meet(to);
        let peer = self.peer(to).filter(|peer| !peer.is_gone())?;
        let reaches = |link: &Link| match self.rails[link.rail.index()].limits.remote {
            RemoteAccess::Network(atomics) => !act.is_atomic() || atomics != Atomics::None,
            RemoteAccess::None | RemoteAccess::Copies => false,
        };
        let key = |link: &Link| Some((link.rail, Key(keys.get(link.remote.filter(|_| link.is_up())?)?)));
        let shared = peer.links.iter().filter(|link| link.is_up()).count() > 1;
        if shared && !act.is_atomic() && len > peer.longest_eager() as u64 {
            return None;
        }
        let done_at = |link: &Link| {
            let busy_until = self.rails[link.rail.index()].busy_until(now).max(now);
            busy_until.as_ns() + link.forecast.busy_ns(len)
        };
        let links = peer.links.iter().filter(|link| reaches(link));
        let found = links.filter_map(|link| Some((done_at(link), key(link)?))).min_by_key(|(at, _)| *at);
        if found.is_none() && peer.links.iter().any(|link| link.state == State::Cold && reaches(link)) {
            self.open_links(to);
        }
        found.map(|(_, found)| found)
    }

    /// Updates whether rails have errands left.
    pub(crate) fn count_errands(&mut self) {
        self.has_errands = self.rails.iter().any(Rail::has_errands);
    }

    /// Takes the accesses that a rail should begin now.
    pub(crate) fn take_accesses(&mut self, rail: RailId) -> Vec<Access> {
        let taken = core::mem::take(&mut self.rails[rail.index()].accesses);
        self.count_errands();
        taken
    }

    /// Handles the result of an access.
    pub(crate) fn on_accessed(&mut self, request: RequestId, came: Came) {
        if let Some(Request::Reading(_)) = self.requests.get(request.0) {
            return self.on_read(request, came);
        }
        let Some(Request::OneSided(access)) = self.requests.get_mut(request.0) else { return };
        let envelope = access.envelope;
        match came {
            Came::Done => self.complete(request, Ok(envelope)),
            Came::Undone => self.fail_request(request, Error::AccessLost(envelope.peer)),
            Came::Unknown => access.is_unknown = true,
        }
    }

    /// Ends the accesses with unknown result over a link that both sides have closed.
    pub(crate) fn end_unknown(&mut self, id: PeerId, rail: RailId) {
        let is_of_it = |request: &Request| match request {
            Request::OneSided(access) => {
                access.is_unknown && access.rail == rail && access.envelope.peer == id
            }
            _ => false,
        };
        let ended: Vec<u64> =
            self.requests.iter().filter(|(_, r)| is_of_it(r)).map(|(name, _)| name).collect();
        ended.into_iter().for_each(|name| self.fail_request(RequestId(name), Error::AccessLost(id)));
    }
}

impl Inspect<'_> {
    /// Whether the calling thread can copy to and from the memory of a peer itself; the rails' limits
    /// report it.
    pub fn copies(self, to: PeerId) -> bool {
        let copies = |link: &Link| self.0.rails[link.rail.index()].limits.remote == RemoteAccess::Copies;
        self.with_peer(to, |peer| !peer.is_gone() && peer.links.iter().any(copies)).unwrap_or(false)
    }
}
