//! What can be seen of an engine from outside.

use crate::clock::Instant;
use crate::engine::Engine;
use crate::engine::peer::{Peer, Standing};
use crate::packet::{PeerId, RailId};
use crate::profile::forecast::Forecast;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::{Rail, RailCounters};
use alloc::string::String;
use alloc::sync::Arc;

/// Something that the user should know although no request failed because of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Which peer it is about.
    pub peer: PeerId,
    /// Cause and consequence, in one line.
    pub text: String,
    /// The peer is gone, and not only one of the rails to it.
    pub is_end: bool,
}

/// What can be seen of a peer from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerView {
    /// Links that are open.
    pub links_up: usize,
    /// Bytes in the window.
    pub backlog: usize,
    /// Bytes of large messages that are not yet on a rail.
    pub body_backlog: u64,
    /// Packets and chunks that rails hold or that wait for acknowledgement.
    pub in_flight: usize,
}

/// How far a rail to a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkView {
    /// It is opened with the first traffic, or about to open.
    Opening,
    /// It carries traffic.
    Up {
        /// The number of the rail at the peer's side.
        remote: u8,
    },
    /// It was up, and is tried from time to time.
    Left,
    /// It could not be opened, or is gone.
    Dead,
}

impl Engine {
    /// Whether there is something to tell the user.
    #[inline]
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// The next thing that the user should know.
    pub fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Requests that have not ended.
    pub fn pending(&self) -> usize {
        self.requests.len() - self.untold
    }

    /// Messages that wait for a receive.
    pub fn unexpected(&self) -> usize {
        self.receives.matching.unexpected_count()
    }

    /// Why a peer is gone; none if it is not.
    pub fn failure(&self, peer: PeerId) -> Option<Arc<str>> {
        match &self.peer(peer)?.standing {
            Standing::Gone(why) => Some(why.clone()),
            Standing::Here | Standing::Leaving => None,
        }
    }

    /// What a rail has carried.
    pub fn counters(&self, rail: RailId) -> RailCounters {
        self.rails.get(rail.index()).map(|rail| rail.counters).unwrap_or_default()
    }

    /// What can be seen of a peer; none if it is unknown.
    pub fn peer_view(&self, peer: PeerId) -> Option<PeerView> {
        let peer = self.peer(peer)?;
        Some(PeerView {
            links_up: peer.links.iter().filter(|link| link.is_up()).count(),
            backlog: peer.window.backlog(),
            body_backlog: peer.bodies.iter().map(|body| body.remaining()).sum(),
            in_flight: peer.links.iter().map(|link| link.tx.len()).sum(),
        })
    }

    /// How far a rail to a peer is; none if it does not lead there.
    pub fn link(&self, peer: PeerId, rail: RailId) -> Option<LinkView> {
        let link = self.peer(peer)?.link(rail)?;
        Some(match (link.state, link.remote) {
            (State::Up, Some(remote)) => LinkView::Up { remote },
            (State::Left, _) => LinkView::Left,
            (State::Dead, _) => LinkView::Dead,
            _ => LinkView::Opening,
        })
    }

    /// When somebody should turn the pump although nothing arrived and nobody called: a rail becomes idle
    /// while something waits, or an acknowledgement or a timeout is due on a lossy link.
    pub fn next_deadline(&self) -> Option<Instant> {
        let waits = |&(index, rail): &(usize, &Rail)| {
            rail.prepared.is_some() || self.ready.iter().any(|&peer| self.takes(peer, RailId(index as u8)))
        };
        let idle = self.rails.iter().enumerate().filter(waits).map(|(_, rail)| rail.idle_at).min();
        let held =
            self.ready.iter().filter_map(|&peer| self.peer(peer)?.states.invitations.patient_until()).min();
        let timers = self.timed.iter().filter_map(|&(peer, rail)| {
            let link = self.peer(peer)?.link(rail)?;
            link.timer()
        });
        timers.chain(idle).chain(held).chain(self.watch_due_at()).min()
    }

    /// Whether a rail that is idle would get something for this peer. A rail that takes no more says so
    /// itself when it has sent something.
    fn takes(&self, peer: PeerId, rail: RailId) -> bool {
        let depth = self.rails[rail.index()].limits.depth;
        let takes = |peer: &Peer, link: &Link| link.accepts(depth) && !peer.holds_back(link);
        self.peer(peer)
            .is_some_and(|peer| !peer.only_waits() && peer.link(rail).is_some_and(|l| takes(peer, l)))
    }

    /// Whether something waits for a rail whose clock says that it is idle, but which takes no more before
    /// it has reported what it sent.
    #[inline]
    pub fn is_stuck(&self, now: Instant) -> bool {
        let stuck = |peer: &Peer, link: &Link| {
            let rail = &self.rails[link.rail.index()];
            let takes = link.accepts(rail.limits.depth) && !peer.holds_back(link);
            link.is_up() && rail.idle_at <= now && !takes
        };
        let any = |peer: &Peer| peer.links.iter().any(|link| stuck(peer, link));
        self.ready.iter().any(|&peer| self.peer(peer).is_some_and(any))
    }

    /// The forecast of a rail to a peer; none if the rail does not lead there.
    pub fn forecast(&self, rail: RailId, peer: PeerId) -> Option<&Forecast> {
        Some(&self.peer(peer)?.link(rail)?.forecast)
    }

    /// Longest message to a peer that is sent without asking, in bytes; none if it is unknown.
    pub fn eager_max(&self, peer: PeerId) -> Option<usize> {
        Some(self.peer(peer)?.way.eager_max)
    }
}
