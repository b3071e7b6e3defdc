//! Peers and rails that come and go while the engine runs: processes of other jobs.

use crate::engine::peer::Standing;
use crate::engine::{Engine, PeerView};
use crate::packet::{PeerId, RailId};
use crate::transfer::driver::Limits;
use crate::transfer::rail::Rail;
use alloc::sync::Arc;
use nmad_wire::Frame;

impl Engine {
    /// The number that the next peer gets; no peer ever gets the number of another.
    pub fn next_peer(&self) -> PeerId {
        PeerId(self.peers.len() as u32)
    }

    /// Puts a rail behind the last one, or to the place of one whose peers were all forgotten.
    ///
    /// # Panics
    /// As [`Engine::add_rail`].
    pub fn place_rail(&mut self, rail: RailId, limits: Limits) {
        while self.rails.len() <= rail.index() {
            self.add_rail(limits);
        }
        self.rails[rail.index()] = Rail::new(limits, rail);
    }

    /// Says goodbye to a peer, so that the end of its links is no failure to it.
    pub fn part(&mut self, id: PeerId) {
        if let Some(peer) = self.peer_mut(id).filter(|peer| peer.links.iter().any(|link| link.is_up())) {
            peer.control(&Frame::Bye);
            self.make_ready(id);
        }
    }

    /// Whether nothing has to leave to a peer any more.
    pub fn has_parted(&self, id: PeerId) -> bool {
        let nothing = PeerView { links_up: 0, backlog: 0, body_backlog: 0, in_flight: 0 };
        let is_still = self.peer_view(id).is_none_or(|view| PeerView { links_up: 0, ..view } == nothing);
        is_still && self.rails.iter().all(|rail| rail.prepared.as_ref().is_none_or(|other| other.to != id))
    }

    /// Forgets a peer: requests that need it end with [`crate::Error::PeerLost`], and its links are gone.
    pub fn forget(&mut self, id: PeerId) {
        let Some(peer) = self.peer_mut(id) else { return };
        if peer.standing == Standing::Here {
            peer.standing = Standing::Leaving;
        }
        self.fail_peer(id, "the processes have disconnected");
        let Some(peer) = self.peer_mut(id) else { return };
        peer.standing = Standing::Gone(Arc::from("the processes have disconnected"));
        peer.links.clear();
        self.timed.retain(|(peer, _)| *peer != id);
        self.watched.forget(id);
    }
}
