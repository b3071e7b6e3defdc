//! State of one peer in the three layers.

use crate::clock::{Duration, Instant};
use crate::collect::sequence::Flows;
use crate::collect::window::{Entry, Window};
use crate::engine::failover::Failover;
use crate::engine::fixed::Fixed;
use crate::engine::way::Way;
use crate::observe::{Lateness, LearningState};
use crate::packet::{PeerId, RailId};
use crate::protocol::PeerStates;
use crate::schedule::body::Body;
use crate::schedule::strategies::Strategies;
use crate::schedule::strategy::RailView;
use crate::transfer::credit::Credit;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::{Rail, busy_until};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Here,
    /// It announced that it leaves; the end of its links is no failure.
    Leaving,
    Gone(Arc<str>),
}

/// Duration and smallest length of a chunk of a body that may be split again: long enough that its header
/// and system call do not matter, short enough to react to a change.
const CHUNK_TIME: Duration = Duration::from_us(250);
const CHUNK_FLOOR: u64 = 64 << 10;
/// Chunks of such bodies that a rail holds at most: one in transfer and one waiting, so that the rail is
/// never idle and the rest can still use other rails.
const AHEAD: u64 = 2;

/// After this number of packets in a row over the same one of several rails, a waiting thread polls that
/// rail more often than the others.
const STEADY: u8 = 4;
/// With more bytes than this in flight to the peer, the time of their acknowledgement is a sample of the
/// rail's speed.
const UNTIMED_MAX: u64 = 16 << 10;

/// The link over which the last packets arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LastRail {
    /// Index of the link.
    place: usize,
    /// Number of packets in a row.
    times: u8,
}

impl LastRail {
    /// Records a packet that arrived over the link at this index.
    #[inline]
    pub(crate) fn note(&mut self, place: usize) {
        let times = if self.place == place { self.times.saturating_add(1) } else { 1 };
        *self = LastRail { place, times };
    }
}

pub(crate) struct Peer {
    pub(crate) id: PeerId,
    pub(crate) standing: Standing,
    // collect
    pub(crate) flows: Flows,
    pub(crate) window: Window,
    // schedule
    pub(crate) strategies: Strategies,
    pub(crate) bodies: VecDeque<Body>,
    // transfer
    pub(crate) links: Vec<Link>,
    pub(crate) credit: Credit,
    /// Protocols and limits that its links allow.
    pub(crate) way: Way,
    /// Thresholds set by the user, which override the measured ones.
    pub(crate) fixed: Fixed,
    /// The rail that is being measured: it alone carries everything.
    pub(crate) only: Option<RailId>,
    /// Protocol states besides its requests.
    pub(crate) states: PeerStates,
    /// State of lost links.
    pub(crate) failover: Failover,
    // observations
    pub(crate) lateness: Lateness,
    pub(crate) learning: LearningState,
    pub(crate) last_rail: LastRail,
    /// It is in the queue of peers with data for a rail.
    pub(crate) is_ready: bool,
    /// Opening its links was requested.
    pub(crate) is_met: bool,
}

impl Peer {
    pub(crate) fn new(id: PeerId, strategies: Strategies, credit: u64, fixed: Fixed) -> Self {
        Peer {
            id,
            standing: Standing::Here,
            flows: Flows::default(),
            window: Window::new(id),
            strategies,
            bodies: VecDeque::new(),
            links: Vec::new(),
            credit: Credit::new(credit),
            way: Way::default(),
            fixed,
            only: None,
            states: PeerStates::default(),
            failover: Failover::default(),
            lateness: Lateness::default(),
            learning: LearningState::default(),
            last_rail: LastRail::default(),
            is_ready: false,
            is_met: false,
        }
    }

    /// Returns the index of the link over a rail.
    #[inline(always)]
    pub(crate) fn place_of(&self, rail: RailId) -> Option<usize> {
        match self.way.lane {
            Some(lane) if lane.rail == rail => Some(lane.place),
            _ => self.links.iter().position(|link| link.rail == rail),
        }
    }

    #[inline]
    pub(crate) fn link(&self, rail: RailId) -> Option<&Link> {
        self.links.iter().find(|link| link.rail == rail)
    }

    #[inline]
    pub(crate) fn link_mut(&mut self, rail: RailId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.rail == rail)
    }

    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.standing, Standing::Gone(_))
    }

    /// Whether the peer is to get a new credit limit, or notices of links that it has lost, without waiting
    /// for another packet.
    #[inline]
    pub(crate) fn owes_news(&self) -> bool {
        self.credit.is_short() || !self.failover.unsaid.is_empty()
    }

    /// Whether messages may bypass the window: pending control frames and timed messages must use it.
    #[inline]
    pub(crate) fn may_bypass_window(&self) -> bool {
        !self.learning.is_active && self.failover.unsaid.is_empty() && !self.is_gone()
    }

    /// Returns the rail to poll for the next packet, for a waiting thread that polls all rails now and
    /// then. `None`: poll all, because the packet may arrive over any rail, or because it may carry an
    /// acknowledgement whose arrival time matters.
    #[inline]
    pub(crate) fn awaited_on(&self) -> Option<RailId> {
        if !self.may_bypass_window() {
            return None;
        }
        if let Some(lane) = self.way.lane {
            return (self.links[lane.place].tx.len() == 0).then_some(lane.rail);
        }
        let link = self.links.get(self.last_rail.place).filter(|_| self.last_rail.times >= STEADY)?;
        let is_quiet = link.is_up() && !link.lossy && link.tx.pending() < UNTIMED_MAX;
        (self.way.has_several && is_quiet).then_some(link.rail)
    }

    /// Whether some rail that is not dead may carry chunks to a receive region with these keys.
    pub(crate) fn can_use(&self, keys: &nmad_wire::Keys) -> bool {
        let usable = |link: &Link| link.remote.is_none_or(|remote| keys.get(remote).is_some());
        self.links.iter().any(|link| link.state != State::Dead && usable(link))
            && keys.iter().next().is_some()
    }

    /// Submits control frames to the common list.
    pub(crate) fn control(&mut self, frame: &nmad_wire::Frame<'_>) {
        if self.is_gone() {
            return;
        }
        let rail = self.wished(None);
        self.window.submit(rail, Entry::control(frame.to_vec()));
    }

    /// Returns the rail that the application has chosen, or the one that is being measured, if it may still
    /// carry traffic to this peer.
    #[inline]
    pub(crate) fn wished(&self, rail: Option<RailId>) -> Option<RailId> {
        rail.or(self.only).filter(|&rail| self.link(rail).is_some_and(Link::is_there))
    }

    /// Whether the peer has only large sends that wait for an Rtr.
    pub(crate) fn only_awaits_rtr(&self) -> bool {
        self.window.is_empty() && self.bodies.is_empty() && self.states.invitations.held_until().is_some()
    }

    /// Whether bodies may be split again, so that a rail gets no more than it needs to be busy.
    pub(crate) fn revises(&self) -> bool {
        self.links.len() > 1 && self.strategies.usual.revises()
    }

    /// Whether a rail has enough data of bodies, and nothing else is waiting for it.
    pub(crate) fn holds_back(&self, link: &Link) -> bool {
        self.window.is_empty() && self.revises() && has_enough(link)
    }

    /// Whether a message would be alone and no Rtr is stored that needs it.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.has_nothing() && self.states.invitations.is_empty()
    }

    /// Whether the peer has nothing for any rail.
    #[inline]
    pub(crate) fn has_nothing(&self) -> bool {
        self.window.is_empty() && self.bodies.is_empty() && !self.states.invitations.holds()
    }
}

/// Returns the length of the longest chunk of a body that may be split again.
pub(crate) fn revisable_chunk_len(link: &Link) -> u64 {
    let carried = (link.forecast.bandwidth() * CHUNK_TIME.as_ns() as f64) as u64;
    carried.max(CHUNK_FLOOR)
}

/// Whether a rail holds enough to stay busy.
pub(crate) fn has_enough(link: &Link) -> bool {
    link.at_rail() > 1 && link.tx.bytes_at_rail() >= AHEAD * revisable_chunk_len(link)
}

/// Makes the strategy's view of a rail to this peer.
#[inline]
pub(crate) fn view<'a>(now: Instant, link: &'a Link, rails: &[Rail], way: &Way) -> RailView<'a> {
    let rail = &rails[link.rail.index()];
    RailView {
        rail: link.rail,
        wire: rail.wire,
        idle_at: busy_until(rails, link.rail, now),
        bandwidth: rail.limits.bandwidth,
        latency_ns: rail.limits.latency_ns,
        primary: link.rail == way.primary,
        fastest: link.rail == way.fastest,
        forecast: &link.forecast,
        rivals: &[],
    }
}

/// Makes the view of a rail that may be full, and is then busy regardless of its predicted idle time.
#[inline]
pub(crate) fn view_of_any<'a>(now: Instant, link: &'a Link, rails: &[Rail], way: &Way) -> RailView<'a> {
    let mut view = view(now, link, rails, way);
    if !link.accepts(rails[link.rail.index()].limits.depth) {
        let rest = link.forecast.busy_ns(link.tx.bytes_at_rail());
        view.idle_at = view.idle_at.max(now + Duration::from_ns(rest));
    }
    view
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("id", &self.id)
            .field("standing", &self.standing)
            .field("strategy", &self.strategies.usual.name())
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}
