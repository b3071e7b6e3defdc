//! The engine's state, and how rails, links and strategies are added to it.

use crate::clock::Instant;
use crate::collect::ended::Ended;
use crate::collect::matching::Matching;
use crate::collect::message::Unpacked;
use crate::collect::request::Request;
use crate::config::Config;
use crate::engine::claims::Claimed;
use crate::engine::expected::Expected;
use crate::engine::fixed::Fixed;
use crate::engine::peer::Peer;
use crate::engine::view::Notice;
use crate::memory::Spare;
use crate::observe::receipt::Receipts;
use crate::observe::watch::Watched;
use crate::packet::{Packet, PeerId, RailId, RequestId};
use crate::profile::sample::Pair;
use crate::protocol::parallel::{Beside, Cores};
use crate::schedule::feed::Feed;
use crate::schedule::registry::{Registry, UnknownStrategy};
use crate::schedule::strategy::Strategy;
use crate::slab::Slab;
use crate::transfer::driver::Limits;
use crate::transfer::link::Link;
use crate::transfer::rail::{Opening, Rail};
use crate::transfer::region::Region;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The engine: everything about messages, nothing about networks.
#[derive(Debug)]
pub struct Engine {
    pub(crate) config: Config,
    // collect
    pub(crate) requests: Slab<Request>,
    pub(crate) matching: Matching,
    /// A receive that is in no table.
    pub(crate) expected: Expected,
    pub(crate) claimed: Claimed,
    pub(crate) messages: Slab<Unpacked>,
    /// Requests that have ended, in that order.
    pub(crate) ended: Ended,
    /// Requests that have ended and were not reported yet.
    pub(crate) untold: usize,
    // transfer
    pub(crate) rails: Vec<Rail>,
    pub(crate) regions: Slab<Region>,
    /// Lossy links, the only ones with timers.
    pub(crate) timed: Vec<(PeerId, RailId)>,
    /// No lossy link needs anything before, unless something happens.
    pub(crate) rests_until: Instant,
    /// Until then all rails of the only peer that is ready are busy, unless something happens: they need not
    /// be asked for each message that joins the others.
    pub(crate) busy_until: Instant,
    /// An acknowledgement that came with a message for which a thread waits, and is not booked yet: when, over
    /// which rail, of which peer, up to which number.
    pub(crate) deferred_ack: Option<(Instant, RailId, PeerId, u32)>,
    /// Peers with several links, of which one may be left.
    pub(crate) watched: Watched,
    pub(crate) has_errands: bool,
    /// Errands after which a rail uses no more memory of requests that have ended.
    pub(crate) closing: usize,
    /// A rail may have a packet that was prepared; none has where that was never asked for.
    pub(crate) prepares: bool,
    // both
    pub(crate) peers: Vec<Option<Box<Peer>>>,
    /// Peers that have something for a rail, in the order of their turns.
    pub(crate) ready: VecDeque<PeerId>,
    /// The strategy of the session, if it chooses between peers.
    pub(crate) chooser: Option<Box<dyn Strategy>>,
    pub(crate) buffers: Vec<Packet>,
    /// Memory of our own for data that nobody has asked for.
    pub(crate) spare: Spare,
    /// Reused by packet builders.
    pub(crate) staged: Vec<RequestId>,
    pub(crate) notices: VecDeque<Notice>,
    /// How messages went, if somebody wants to know.
    pub(crate) receipts: Option<Box<Receipts>>,
    /// Cores beside the caller's.
    pub(crate) cores: Arc<Cores>,
    pub(crate) beside: Beside,
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
            deferred_ack: None,
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

    pub(crate) fn peer(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(peer.0 as usize)?.as_deref()
    }

    #[inline]
    pub(crate) fn peer_mut(&mut self, peer: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(peer.0 as usize)?.as_deref_mut()
    }

    /// A peer has something for a rail.
    #[inline]
    pub(crate) fn make_ready(&mut self, id: PeerId) {
        self.busy_until = Instant::default();
        let Some(peer) = self.peers.get_mut(id.0 as usize).and_then(|p| p.as_deref_mut()) else { return };
        if !peer.is_ready {
            peer.is_ready = true;
            self.ready.push_back(id);
        }
        if !peer.is_met {
            self.open_links(id);
        }
    }

    pub(crate) fn open_on(&mut self, rail: RailId, opening: Opening) {
        self.closing += usize::from(opening.frees_user_memory());
        self.rails[rail.index()].openings.push_back(opening);
        self.has_errands = true;
    }
}
