//! The engine's state as seen from outside.

use crate::clock::Instant;
use crate::engine::Engine;
use crate::engine::peer::{Peer, Standing};
use crate::packet::{PeerId, RailId};
use crate::profile::forecast::Forecast;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::{Rail, RailCounters};
use alloc::string::String;
use alloc::sync::Arc;

/// Message to the user about an event that failed no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The peer concerned.
    pub peer: PeerId,
    /// Cause and consequence, in one line.
    pub text: String,
    /// Its subject.
    pub kind: NoticeKind,
}

/// The subject of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// A condition that the library handles by itself; the user can do nothing about it.
    Detail,
    /// A rail or a peer that does not work.
    Trouble,
    /// The end of a peer, not only of one of the rails to it.
    End,
}

/// State of a peer as seen from outside.
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

/// State of the link of a rail to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkView {
    /// It opens with the first traffic, or is opening.
    Opening,
    /// It carries traffic.
    Up {
        /// Number of the rail on the peer's side.
        remote: u8,
    },
    /// It was up, is down, and is retried from time to time.
    Left,
    /// It could not be opened, or is lost for good.
    Dead,
}

/// The state of an engine, to be looked at.
#[derive(Debug, Clone, Copy)]
pub struct Inspect<'a>(pub(crate) &'a Engine);

impl Engine {
    /// Returns the state, to be looked at.
    #[inline(always)]
    pub fn inspect(&self) -> Inspect<'_> {
        Inspect(self)
    }

    /// Returns the next notice for the user.
    pub fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Whether an idle rail would get an order for this peer. A full rail does not count: it reports when
    /// it has sent something.
    fn takes(&self, peer: PeerId, rail: RailId) -> bool {
        let depth = self.rails[rail.index()].limits.depth;
        let takes = |peer: &Peer, link: &Link| link.accepts(depth) && !peer.holds_back(link);
        self.peer(peer)
            .is_some_and(|peer| !peer.only_awaits_rtr() && peer.link(rail).is_some_and(|l| takes(peer, l)))
    }
}

impl<'a> Inspect<'a> {
    /// Whether there is a notice for the user.
    #[inline]
    pub fn has_notices(self) -> bool {
        !self.0.notices.is_empty()
    }

    /// Returns the number of requests that have not ended.
    pub fn pending(self) -> usize {
        self.0.requests.len() - self.0.untold
    }

    /// Returns the number of unexpected messages.
    pub fn unexpected(self) -> usize {
        self.0.receives.matching.unexpected_count()
    }

    /// Returns the peers that are gone without having left the job, in the order in which that was found.
    pub fn failed(self) -> &'a [PeerId] {
        &self.0.failed
    }

    /// Returns why a peer is lost; `None` if it is not.
    pub fn failure(self, peer: PeerId) -> Option<Arc<str>> {
        match &self.0.peer(peer)?.standing {
            Standing::Gone(why) => Some(why.clone()),
            Standing::Here | Standing::Leaving => None,
        }
    }

    /// Returns the counters of a rail.
    pub fn counters(self, rail: RailId) -> RailCounters {
        self.0.rails.get(rail.index()).map(|rail| rail.counters).unwrap_or_default()
    }

    /// Whether a peer can be reached over some rail, or could be.
    pub fn reaches(self, peer: PeerId) -> bool {
        self.0.peer(peer).is_some() || self.0.peers.in_reach(peer).next().is_some()
    }

    /// Returns the state of a peer; `None` if it is unknown.
    pub fn peer_view(self, peer: PeerId) -> Option<PeerView> {
        self.with_peer(peer, |peer| PeerView {
            links_up: peer.links.iter().filter(|link| link.is_up()).count(),
            backlog: peer.window.backlog(),
            body_backlog: peer.bodies.iter().map(|body| body.remaining()).sum(),
            in_flight: peer.links.iter().map(|link| link.tx.len()).sum(),
        })
    }

    /// Returns the state of the link of a rail to a peer; `None`: the rail does not reach the peer.
    pub fn link(self, peer: PeerId, rail: RailId) -> Option<LinkView> {
        let view = |link: &Link| match (link.state, link.remote) {
            (State::Up, Some(remote)) => LinkView::Up { remote },
            (State::Left, _) => LinkView::Left,
            (State::Dead, _) => LinkView::Dead,
            _ => LinkView::Opening,
        };
        self.with_peer(peer, |peer| peer.link(rail).map(view))?
    }

    /// Returns when the pump has to run even without an event or call: a rail becomes idle while data
    /// waits, or an acknowledgement or a timeout is due on a lossy link.
    pub fn next_deadline(self) -> Option<Instant> {
        let waits = |&(index, rail): &(usize, &Rail)| {
            rail.prepared.is_some()
                || self.0.ready.iter().any(|&peer| self.0.takes(peer, RailId(index as u8)))
        };
        let idle = self.0.rails.iter().enumerate().filter(waits).map(|(_, rail)| rail.idle_at).min();
        let held =
            self.0.ready.iter().filter_map(|&peer| self.0.peer(peer)?.states.invitations.held_until()).min();
        let timers = self.0.timed.iter().filter_map(|&(peer, rail)| {
            let link = self.0.peer(peer)?.link(rail)?;
            link.timer()
        });
        timers.chain(idle).chain(held).chain(self.0.watch_due_at()).min()
    }

    /// Whether data waits for a rail that is predicted to be idle but accepts nothing before it reports
    /// what it has sent.
    #[inline]
    pub fn is_stuck(self, now: Instant) -> bool {
        let stuck = |peer: &Peer, link: &Link| {
            let rail = &self.0.rails[link.rail.index()];
            let takes = link.accepts(rail.limits.depth) && !peer.holds_back(link);
            link.is_up() && rail.idle_at <= now && !takes
        };
        let any = |peer: &Peer| peer.links.iter().any(|link| stuck(peer, link));
        self.0.ready.iter().any(|&peer| self.0.peer(peer).is_some_and(any))
    }

    /// Returns the forecast of a rail to a peer; `None` if there is no link.
    pub fn forecast(self, rail: RailId, peer: PeerId) -> Option<&'a Forecast> {
        if let Some(peer) = self.0.peer(peer) {
            return Some(&peer.link(rail)?.forecast);
        }
        self.0.peers.in_reach(peer).find(|other| *other == rail)?;
        let rail = &self.0.rails[rail.index()];
        Some(rail.profiles.of(peer).unwrap_or(&rail.nominal))
    }

    /// Returns the length in bytes of the longest eager message to a peer; `None` if the peer is unknown.
    pub fn eager_max(self, peer: PeerId) -> Option<usize> {
        self.with_peer(peer, |peer| peer.way.eager_max)
    }
}
