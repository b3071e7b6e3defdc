//! Where the three layers meet, and the only place where they do.
//!
//! This file holds the state and the face; each of its neighbours joins the layers in one direction: `plan`
//! (how a message goes: the `protocol`), `submit` (application to window), `depart` (what rails are given,
//! booked once; `leaving` is a message on its way), `offer` (messages that their receiver copies), `claim`
//! (found now, received later), `dispatch` (window to rail), `chunks` (bodies to rails), `arrive` (rail to
//! application), `plain` (the same for a packet with one message), `kept` (timers of lossy rails),
//! `rendezvous` (large messages both ways), `push` (their beginnings that do not wait), `late` (receivers
//! that let them wait: `lateness`), `parts` (eager messages longer than a packet), `parallel` (eager messages
//! that several cores post), `access` (memory that peers have exposed), `failure` (links and peers that are
//! gone), `suspect` (links that may be), `part` (peers that come and go), `peer` (what the layers keep for
//! one peer: `lane`, `fixed`), `short_way` (past the window), `forecast` (what profiles say for it),
//! `in_force` (the thresholds that follow), `learn` (profiles that transfers correct), `receipt` (how
//! messages went), `traffic` (how many there were), `outcome` (how requests ended).

mod access;
mod arrive;
mod chunks;
mod claim;
mod depart;
mod dispatch;
mod failure;
mod fixed;
mod forecast;
mod in_force;
mod invite;
mod kept;
mod lane;
mod late;
mod lateness;
mod learn;
mod leaving;
mod offer;
mod outcome;
mod parallel;
mod part;
mod parts;
mod peer;
mod plain;
mod plan;
mod protocol;
mod push;
mod read;
mod receipt;
mod rendezvous;
mod short_way;
mod submit;
mod suspect;
mod traffic;

use crate::clock::{Duration, Instant};
use crate::collect::ended::Ended;
use crate::collect::matching::Matching;
use crate::collect::message::Unpacked;
use crate::collect::request::Request;
use crate::memory::Spare;
use crate::packet::{Packet, PeerId, RailId, RequestId};
use crate::profile::sample::Pair;
use crate::schedule::feed::Feed;
use crate::schedule::registry::{Registry, UnknownStrategy};
use crate::schedule::strategy::Strategy;
use crate::slab::Slab;
use crate::transfer::congestion::Scheme;
use crate::transfer::driver::Limits;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::{Opening, Rail, RailCounters};
use crate::transfer::region::Region;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
pub use claim::Claim;
use claim::Claimed;
use fixed::Fixed;
pub use in_force::{InForce, RailInForce, ThresholdOrigin};
pub use leaving::{Leaving, Refused, Submitted, To};
pub use outcome::NotWell;
use parallel::Beside;
pub use parallel::Cores;
use peer::{Peer, Standing};
use plain::Expected;
pub use plain::Met;
pub use protocol::{Caller, Plan, Protocol};
use receipt::Receipts;
pub use receipt::{Candidate, Receipt};
use suspect::Watched;
pub use traffic::Traffic;

/// How an engine behaves. Every field has a default that is right without knowing the network.
#[derive(Debug, Clone)]
pub struct Config {
    /// Our own rank.
    pub me: PeerId,
    /// Name of the strategy for all peers.
    pub strategy: String,
    /// The strategies to choose from.
    pub registry: Registry,
    /// When rails are fed.
    pub feed: Feed,
    /// Longest message that is sent without asking, in bytes of data; cut to what packets hold. None: as the
    /// profile says, [`Config::EAGER_MAX`] without one.
    pub eager_max: Option<usize>,
    /// Data of at least this many bytes stays in place instead of being copied into the packet. None: as the
    /// profile says, [`Config::IN_PLACE_MIN`] without one.
    pub in_place_min: Option<usize>,
    /// Two things share a packet if the smaller has at most this many bytes. None: as the profile says,
    /// without one whenever both fit.
    pub aggregate_max: Option<usize>,
    /// Eager data that one peer may have here without a receive, in bytes.
    pub credit: u64,
    /// Longest chunk of a large message, in bytes; a rail gets no more at once.
    pub chunk: u64,
    /// Bandwidths of the rails in bytes per second, in the order in which they are added; used instead of
    /// the nominal ones. Missing or zero: nominal.
    pub bandwidths: Vec<u64>,
    /// What bounds the bytes in flight on lossy links.
    pub congestion: Scheme,
    /// Some transfers are timed, and correct the profiles of their rails.
    pub adapts: bool,
    /// How long a peer is waited for whose rails have all failed, if some of them may come back.
    pub return_within: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            me: PeerId(0),
            strategy: String::from("aggregate"),
            registry: Registry::default(),
            feed: Feed::default(),
            eager_max: None,
            in_place_min: None,
            aggregate_max: None,
            credit: 4 << 20,
            chunk: 1 << 20,
            bandwidths: Vec::new(),
            congestion: Scheme::default(),
            adapts: false,
            return_within: Duration::from_ms(3000),
        }
    }
}

impl Config {
    /// Longest message that is sent without asking when neither a setting nor a profile says it, in bytes.
    pub const EAGER_MAX: usize = 32 << 10;
    /// From how many bytes on data stays in place when neither a setting nor a profile says it.
    pub const IN_PLACE_MIN: usize = 16 << 10;
    /// From how many bytes on a block of non-contiguous data stays in place when no profile says it: a piece
    /// of an iovec costs the kernel about as much as copying this many bytes.
    pub const BLOCK_MIN: usize = 1 << 10;
    /// Least credit that makes sense, in bytes: a peer assumes this much before the first limit arrives.
    pub const CREDIT_MIN: u64 = crate::transfer::credit::INITIAL;
    /// Shortest chunk that makes sense, in bytes: each costs a rail an order and its answer.
    pub const CHUNK_MIN: u64 = 4 << 10;
}

/// Something that the user should know although no request failed because of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Which peer it is about.
    pub peer: PeerId,
    /// Cause and consequence, in one line.
    pub text: String,
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

/// The engine: everything about messages, nothing about networks.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    // collect
    requests: Slab<Request>,
    matching: Matching,
    /// A receive that is in no table.
    expected: Expected,
    claimed: Claimed,
    messages: Slab<Unpacked>,
    /// Requests that have ended, in that order.
    ended: Ended,
    /// Requests that have ended and were not reported yet.
    untold: usize,
    // transfer
    rails: Vec<Rail>,
    regions: Slab<Region>,
    /// Lossy links, the only ones with timers.
    timed: Vec<(PeerId, RailId)>,
    /// No lossy link needs anything before, unless something happens.
    rests_until: Instant,
    /// Until then all rails of the only peer that is ready are busy, unless something happens: they need not
    /// be asked for each message that joins the others.
    busy_until: Instant,
    /// An acknowledgement of which no note was taken yet: when it came, and of what.
    unheard: Option<(Instant, RailId, PeerId, u32)>,
    /// Peers with several links, of which one may be left.
    watched: Watched,
    has_errands: bool,
    /// Errands after which a rail uses no more memory of requests that have ended.
    closing: usize,
    /// A rail may have a packet that was prepared; none has where that was never asked for.
    prepares: bool,
    // both
    peers: Vec<Option<Box<Peer>>>,
    /// Peers that have something for a rail, in the order of their turns.
    ready: VecDeque<PeerId>,
    /// The strategy of the session, if it chooses between peers.
    chooser: Option<Box<dyn Strategy>>,
    buffers: Vec<Packet>,
    /// Memory of our own for data that nobody has asked for.
    spare: Spare,
    /// Reused by packet builders.
    staged: Vec<RequestId>,
    notices: VecDeque<Notice>,
    /// How messages went, if somebody wants to know.
    receipts: Option<Box<Receipts>>,
    /// Cores beside the caller's.
    cores: Arc<Cores>,
    beside: Beside,
}

impl Engine {
    /// An engine without rails and peers.
    ///
    /// # Errors
    /// The configured strategy is not in the registry.
    pub fn new(config: Config) -> Result<Engine, UnknownStrategy> {
        let chooser = Some(config.registry.make(&config.strategy)?).filter(|strategy| strategy.chooses());
        Ok(Engine {
            chooser,
            config,
            requests: Slab::default(),
            matching: Matching::default(),
            expected: Expected::default(),
            claimed: Claimed::default(),
            messages: Slab::default(),
            ended: Ended::default(),
            untold: 0,
            rails: Vec::new(),
            regions: Slab::default(),
            timed: Vec::new(),
            rests_until: Instant::default(),
            busy_until: Instant::default(),
            unheard: None,
            watched: Watched::default(),
            has_errands: false,
            closing: 0,
            prepares: false,
            peers: Vec::new(),
            ready: VecDeque::new(),
            buffers: Vec::new(),
            spare: Spare::default(),
            staged: Vec::new(),
            notices: VecDeque::new(),
            receipts: None,
            cores: Arc::default(),
            beside: [Pair::Unknown; nmad_wire::MAX_RAILS],
        })
    }

    /// Adds a rail; its place is that of its driver in the list given to the pump.
    ///
    /// # Panics
    /// More than [`nmad_wire::MAX_RAILS`] rails, or one with packets below [`Limits::PACKET_MIN`].
    pub fn add_rail(&mut self, mut limits: Limits) -> RailId {
        assert!(
            limits.packet >= Limits::PACKET_MIN,
            "a rail's packets are at least {} B",
            Limits::PACKET_MIN
        );
        assert!(self.rails.len() < nmad_wire::MAX_RAILS, "at most {} rails", nmad_wire::MAX_RAILS);
        if let Some(&configured) = self.config.bandwidths.get(self.rails.len()).filter(|&&b| b > 0) {
            limits.bandwidth = configured;
        }
        let rail = RailId(self.rails.len() as u8);
        self.rails.push(Rail::new(limits, rail));
        rail
    }

    /// These two rails are ways to one NIC: what one carries the other cannot carry at the same time. To be
    /// said before their links are added.
    pub fn share_wire(&mut self, rail: RailId, with: RailId) {
        let wire = self.rails[with.index()].wire;
        self.rails[rail.index()].wire = wire;
        let ways = || self.rails.iter().filter(|rail| rail.wire == wire).count();
        let shares = ways() > 1;
        self.rails.iter_mut().filter(|rail| rail.wire == wire).for_each(|rail| rail.shares = shares);
    }

    /// What the user knows a rail by.
    pub fn name_rail(&mut self, rail: RailId, name: &str) {
        self.rails[rail.index()].name = String::from(name);
    }

    /// This peer can be reached over this rail. Nothing is opened before there is something to send.
    pub fn add_link(&mut self, peer: PeerId, rail: RailId) {
        let index = peer.0 as usize;
        if self.peers.len() <= index {
            self.peers.resize_with(index + 1, || None);
        }
        let limits = self.rails[rail.index()].limits;
        if self.peers[index].is_none() {
            let strategy = self.config.registry.make(&self.config.strategy).expect("checked in Engine::new");
            let fixed = Fixed::of(&self.config, peer);
            self.peers[index] = Some(Box::new(Peer::new(peer, strategy, self.config.credit, fixed)));
        }
        let peer = self.peers[index].as_mut().expect("just made");
        if peer.link(rail).is_none() {
            let forecast = self.rails[rail.index()].nominal.fresh();
            // There are few, and never more: no room is left for others.
            peer.links.reserve_exact(1);
            peer.links.push(Link::new(rail, limits.lossy, forecast, self.config.congestion));
            peer.topology_changed(&self.rails);
            if limits.lossy {
                self.timed.push((peer.id, rail));
            }
            if peer.links.len() == 2 {
                self.watched.add(peer.id);
            }
        }
    }

    /// Chooses the strategy for one peer, or for all peers that are known.
    ///
    /// # Errors
    /// No strategy has that name.
    pub fn set_strategy(&mut self, peer: Option<PeerId>, name: &str) -> Result<(), UnknownStrategy> {
        let made = self.config.registry.make(name)?;
        if peer.is_none() {
            self.config.strategy = String::from(name);
            self.chooser = Some(made).filter(|strategy| strategy.chooses());
        }
        for other in self.peers.iter_mut().flatten().filter(|p| peer.is_none_or(|id| p.id == id)) {
            other.strategy = self.config.registry.make(name)?;
            other.strategy.meet(other.id);
            other.topology_changed(&self.rails);
        }
        Ok(())
    }

    /// The strategies to choose from.
    pub fn registry(&self) -> &Registry {
        &self.config.registry
    }

    /// Chooses when rails are fed.
    pub fn set_feed(&mut self, feed: Feed) {
        self.config.feed = feed;
    }

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
        self.matching.unexpected_count()
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
        let held = self.ready.iter().filter_map(|&peer| self.peer(peer)?.patient_until()).min();
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

    fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(peer.0 as usize)?.as_deref()
    }

    #[inline]
    fn peer_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(peer.0 as usize)?.as_deref_mut()
    }

    /// A peer has something for a rail.
    #[inline]
    fn make_ready(&mut self, id: PeerId) {
        self.busy_until = Instant::default();
        let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        if !peer.is_ready {
            peer.is_ready = true;
            self.ready.push_back(id);
        }
        if !peer.is_met {
            self.meet(id);
        }
    }

    fn open_on(&mut self, rail: RailId, opening: Opening) {
        self.closing += usize::from(opening.frees_user_memory());
        self.rails[rail.index()].openings.push_back(opening);
        self.has_errands = true;
    }
}
