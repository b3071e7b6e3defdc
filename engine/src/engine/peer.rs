//! What the three layers keep for one peer.

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
    /// It said goodbye; the end of its links is no failure.
    Leaving,
    Gone(Arc<str>),
}

/// A chunk of a body whose shares may be revised is what the rail carries in this time, and no shorter than
/// the next figure: long enough that its header and system call do not count, short enough to be an answer
/// to a change.
const CHUNK_TIME: Duration = Duration::from_us(250);
const CHUNK_FLOOR: u64 = 64 << 10;
/// Such chunks that a rail holds at most: one under way, one waiting, so that the rail never starves and the
/// rest can still go elsewhere.
const AHEAD: u64 = 2;

/// After this number of packets in a row over the same one of several rails, a thread that waits looks at
/// that rail more often than at the others.
const STEADY: u8 = 4;
/// More bytes than this on their way to the peer, and the time of their acknowledgement tells how fast the
/// rail is.
const UNTIMED: u64 = 16 << 10;

/// The link over which packets came last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// Place of the link.
    place: usize,
    /// Packets one after the other.
    times: u8,
}

impl Heard {
    /// A packet came over the link at this place.
    #[inline]
    pub(crate) fn note(&mut self, place: usize) {
        let times = if self.place == place { self.times.saturating_add(1) } else { 1 };
        *self = Heard { place, times };
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
    /// What links and limits allow.
    pub(crate) way: Way,
    /// Thresholds that the user has set; they overrule the measured ones.
    pub(crate) fixed: Fixed,
    /// The rail that is measured: it carries everything.
    pub(crate) only: Option<RailId>,
    /// States that protocols keep besides their requests.
    pub(crate) states: PeerStates,
    /// What is left of links that were lost.
    pub(crate) failover: Failover,
    // observations
    pub(crate) lateness: Lateness,
    pub(crate) learning: LearningState,
    pub(crate) heard: Heard,
    /// It is in the queue of peers that have something for a rail.
    pub(crate) is_ready: bool,
    /// Its links were asked for.
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
            heard: Heard::default(),
            is_ready: false,
            is_met: false,
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

    /// Whether messages may pass the window: control frames that are due leave from there, and so does what
    /// is timed.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        !self.learning.is_active && self.failover.unsaid.is_empty() && !self.is_gone()
    }

    /// The rail on which to look for the next packet, for a thread that waits for it and looks at all of them
    /// now and then. None: on all, because it may come over any, or because it may acknowledge something, and
    /// when that came would have to be known.
    #[inline]
    pub(crate) fn awaited_on(&self) -> Option<RailId> {
        if !self.is_usual() {
            return None;
        }
        if let Some(lane) = self.way.lane {
            return (self.links[lane.place].tx.len() == 0).then_some(lane.rail);
        }
        let link = self.links.get(self.heard.place).filter(|_| self.heard.times >= STEADY)?;
        let is_quiet = link.is_up() && !link.lossy && link.tx.pending() < UNTIMED;
        (self.way.has_several && is_quiet).then_some(link.rail)
    }

    /// Whether some rail that is left, or still to open, may carry chunks to a receive region with these
    /// keys.
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

    /// The rail that the application wishes, or the one that is measured, if it may still carry something to
    /// this peer.
    #[inline]
    pub(crate) fn wished(&self, rail: Option<RailId>) -> Option<RailId> {
        rail.or(self.only).filter(|&rail| self.link(rail).is_some_and(Link::is_there))
    }

    /// Whether there is nothing but large sends that wait for an Rtr, and for how long they will.
    pub(crate) fn only_waits(&self) -> bool {
        self.window.is_empty() && self.bodies.is_empty() && self.states.invitations.patient_until().is_some()
    }

    /// Whether shares of bodies may be revised, so that a rail gets no more than it needs to be busy.
    pub(crate) fn revises(&self) -> bool {
        self.links.len() > 1 && self.strategies.usual.revises()
    }

    /// Whether a rail has enough of bodies, and there is nothing else for it.
    pub(crate) fn holds_back(&self, link: &Link) -> bool {
        self.window.is_empty() && self.revises() && has_enough(link)
    }

    /// Whether a message would be alone, and would not be needed for an Rtr.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.has_nothing() && self.states.invitations.is_empty()
    }

    /// Whether no rail would get anything.
    #[inline]
    pub(crate) fn has_nothing(&self) -> bool {
        self.window.is_empty() && self.bodies.is_empty() && !self.states.invitations.holds()
    }
}

/// Longest chunk of a body whose shares may be revised.
pub(crate) fn brisk(link: &Link) -> u64 {
    let carried = (link.forecast.bandwidth() * CHUNK_TIME.as_ns() as f64) as u64;
    carried.max(CHUNK_FLOOR)
}

/// Whether a rail holds as much as it needs to be busy.
pub(crate) fn has_enough(link: &Link) -> bool {
    link.at_rail() > 1 && link.tx.bytes_at_rail() >= AHEAD * brisk(link)
}

/// A rail to this peer as a strategy sees it.
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

/// A rail that may be full, and is busy then, whatever its clock says.
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
