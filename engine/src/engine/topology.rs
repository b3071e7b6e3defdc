//! Adding and removing rails, links and peers, and their configuration.

use crate::engine::fixed::Fixed;
use crate::engine::peer::{Peer, Standing};
use crate::engine::{Engine, Inspect, PeerView};
use crate::packet::{PeerId, RailId};
use crate::profile::forecast::Forecast;
use crate::profile::measured::Profile;
use crate::schedule::feed::Feed;
use crate::schedule::registry::{Registry, UnknownStrategy};
use crate::schedule::strategies::Strategies;
use crate::schedule::strategy::Strategy;
use crate::transfer::congestion::Scheme;
use crate::transfer::driver::Limits;
use crate::transfer::link::Link;
use crate::transfer::rail::Rail;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use nmad_wire::Frame;

impl<'a> Inspect<'a> {
    /// Returns the registry of strategies.
    pub fn registry(self) -> &'a Registry {
        &self.0.config.registry
    }

    /// Returns the number that the next peer gets; numbers are never reused.
    pub fn next_peer(self) -> PeerId {
        self.0.peers.next_id()
    }

    /// Whether nothing is left to send to a peer.
    pub fn has_parted(self, id: PeerId) -> bool {
        let nothing = PeerView { links_up: 0, backlog: 0, body_backlog: 0, in_flight: 0 };
        let is_still = self.peer_view(id).is_none_or(|view| PeerView { links_up: 0, ..view } == nothing);
        is_still && self.0.rails.iter().all(|rail| rail.prepared.as_ref().is_none_or(|other| other.to != id))
    }
}

impl Engine {
    /// Makes a peer that is in reach; false: it is made, or cannot be reached.
    #[inline]
    pub(crate) fn meet(&mut self, id: PeerId) -> bool {
        self.peers.get(id).is_none() && self.make(id)
    }

    #[cold]
    fn make(&mut self, id: PeerId) -> bool {
        let Some(peer) = self.in_reach(id) else { return false };
        let rails: Vec<RailId> = peer.links.iter().map(|link| link.rail).collect();
        self.peers.insert(peer);
        self.look_after(id, rails);
        true
    }

    /// Returns a peer that is in reach as it would be made now.
    fn in_reach(&self, id: PeerId) -> Option<Peer> {
        let rails = self.peers.in_reach(id);
        let mut peer: Option<Peer> = None;
        for rail in rails {
            let peer = peer.get_or_insert_with(|| {
                let strategy =
                    self.config.registry.make(&self.config.strategy).expect("checked in Engine::new");
                let fixed = Fixed::of(&self.config, id);
                Peer::new(id, Strategies::new(id, strategy), self.config.credit, fixed)
            });
            peer.add_link(&self.rails[rail.index()], rail, self.config.congestion);
        }
        peer.as_mut().into_iter().for_each(|peer| peer.derive_way(&self.rails));
        peer
    }

    /// Begins to time new links to a peer, and to watch the peer if it has several.
    fn look_after(&mut self, id: PeerId, rails: impl IntoIterator<Item = RailId>) {
        let is_lossy = |rail: &RailId| self.rails[rail.index()].limits.lossy;
        self.timed.extend(rails.into_iter().filter(is_lossy).map(|rail| (id, rail)));
        if self.peer(id).is_some_and(|peer| peer.links.len() > 1) {
            self.observers.watched.add(id);
        }
    }
}

impl Inspect<'_> {
    /// Answers from a peer, or from one that is in reach as it would be made now.
    pub(crate) fn with_peer<R>(self, id: PeerId, answer: impl FnOnce(&Peer) -> R) -> Option<R> {
        match self.0.peer(id) {
            Some(peer) => Some(answer(peer)),
            None => Some(answer(&self.0.in_reach(id)?)),
        }
    }
}

impl Peer {
    fn add_link(&mut self, rail: &Rail, id: RailId, congestion: Scheme) {
        let forecast = rail.nominal.fresh();
        // Links are few and never grow: reserve no spare capacity.
        self.links.reserve_exact(1);
        self.links.push(Link::new(id, rail.limits.lossy, forecast, congestion));
    }
}

/// The rails, links, peers and settings of an engine, to be changed.
#[derive(Debug)]
pub struct Setup<'a>(pub(crate) &'a mut Engine);

impl Engine {
    /// Returns the rails, links, peers and settings, to be changed.
    #[inline]
    pub fn setup(&mut self) -> Setup<'_> {
        Setup(self)
    }
}

impl Setup<'_> {
    /// Adds a rail; its number is the index of its driver in the list given to the pump.
    ///
    /// # Panics
    /// More than [`nmad_wire::MAX_RAILS`] rails, or one with packets below [`Limits::PACKET_MIN`].
    pub fn add_rail(&mut self, limits: Limits) -> RailId {
        assert!(self.0.rails.len() < nmad_wire::MAX_RAILS, "at most {} rails", nmad_wire::MAX_RAILS);
        let rail = RailId(self.0.rails.len() as u8);
        let limits = self.checked(rail, limits);
        self.0.rails.push(Rail::new(limits, rail));
        rail
    }

    /// Returns the limits of a rail with its configured bandwidth, if there is one.
    fn checked(&self, rail: RailId, mut limits: Limits) -> Limits {
        assert!(
            limits.packet >= Limits::PACKET_MIN,
            "a rail's packets are at least {} B",
            Limits::PACKET_MIN
        );
        if let Some(&configured) = self.0.config.bandwidths.get(rail.index()).filter(|&&b| b > 0) {
            limits.bandwidth = configured;
        }
        limits
    }

    /// Declares that two rails use one NIC, and so share its bandwidth. To be called before their links are
    /// added.
    pub fn share_wire(&mut self, rail: RailId, with: RailId) {
        let wire = self.0.rails[with.index()].wire;
        self.0.rails[rail.index()].wire = wire;
        let ways = || self.0.rails.iter().filter(|rail| rail.wire == wire).count();
        let shares = ways() > 1;
        self.0.rails.iter_mut().filter(|rail| rail.wire == wire).for_each(|rail| rail.shares = shares);
    }

    /// Sets the name of a rail for the user.
    pub fn name_rail(&mut self, rail: RailId, name: &str) {
        self.0.rails[rail.index()].name = String::from(name);
    }

    /// Declares that this peer can be reached over this rail. Nothing is opened before there is data to
    /// send, and the peer is made when something is first done with it.
    pub fn add_link(&mut self, peer: PeerId, rail: RailId) {
        let Engine { peers, rails, config, .. } = &mut *self.0;
        let Some(made) = peers.get_mut(peer) else { return peers.note(peer, rail) };
        if made.link(rail).is_none() {
            made.add_link(&rails[rail.index()], rail, config.congestion);
            made.derive_way(rails);
            self.0.look_after(peer, [rail]);
        }
    }

    /// Adds a strategy to the registry; those that decide already stay.
    pub fn register(&mut self, make: impl Fn() -> Box<dyn Strategy> + Send + Sync + 'static) {
        self.0.config.registry.add(make);
    }

    /// Sets the strategy of one peer, or of all known peers.
    ///
    /// # Errors
    /// No strategy has that name.
    pub fn set_strategy(&mut self, peer: Option<PeerId>, name: &str) -> Result<(), UnknownStrategy> {
        let made = self.0.config.registry.make(name)?;
        if let Some(id) = peer {
            self.0.meet(id);
        } else {
            self.0.config.strategy = String::from(name);
            self.0.chooser = Some(made).filter(|strategy| strategy.chooses());
        }
        for other in self.0.peers.iter_mut().filter(|p| peer.is_none_or(|id| p.id == id)) {
            other.strategies.replace_usual(other.id, self.0.config.registry.make(name)?);
            other.derive_way(&self.0.rails);
        }
        Ok(())
    }

    /// Sets when rails are given packets.
    pub fn set_feed(&mut self, feed: Feed) {
        self.0.config.feed = feed;
    }

    /// Sets the measured profile of a rail between this host and one peer, or, without a peer, between this
    /// host and all peers on the rail, including those added later. Without a profile, nominal figures are
    /// used.
    pub fn set_profile(&mut self, rail: RailId, peer: Option<PeerId>, profile: Arc<Profile>) {
        if let Some(rail) = self.0.rails.get_mut(rail.index()) {
            rail.profiles.set(peer, profile.clone());
        }
        for other in self.0.peers.iter_mut().filter(|p| peer.is_none_or(|id| p.id == id)) {
            if let Some(link) = other.link_mut(rail) {
                link.forecast = Forecast::new(profile.clone());
                link.learning = None;
                other.derive_way(&self.0.rails);
            }
        }
    }

    /// Begins to measure one rail to a peer: until this is called again with `None`, everything uses this
    /// rail as if it were the only one, so nothing is kept for replay on another. Both sides must call it
    /// while nothing is in flight between them. If the rail dies meanwhile, messages of the measurement are
    /// lost.
    pub fn measure(&mut self, peer: PeerId, rail: Option<RailId>) {
        self.0.meet(peer);
        if let Some(peer) = self.0.peers.get_mut(peer) {
            peer.only = rail;
            peer.derive_way(&self.0.rails);
        }
    }

    /// Adds a rail at this place: after the last one, or at the place of one whose peers were all removed.
    ///
    /// # Panics
    /// Under the conditions of [`Setup::add_rail`].
    pub fn place_rail(&mut self, rail: RailId, limits: Limits) {
        while self.0.rails.len() <= rail.index() {
            self.add_rail(limits);
        }
        let limits = self.checked(rail, limits);
        self.0.rails[rail.index()] = Rail::new(limits, rail);
    }

    /// Announces to a peer that this process leaves, so that the end of the links is no failure for it.
    pub fn part(&mut self, id: PeerId) {
        if let Some(peer) = self.0.peer_mut(id).filter(|peer| peer.links.iter().any(|link| link.is_up())) {
            peer.control(&Frame::Bye);
            self.0.make_ready(id);
        }
    }

    /// Removes a peer: requests that need it end with [`crate::Error::PeerLost`], and its links are closed.
    pub fn forget(&mut self, id: PeerId) {
        self.0.meet(id);
        let Some(peer) = self.0.peer_mut(id) else { return };
        if peer.standing == Standing::Here {
            peer.standing = Standing::Leaving;
        }
        self.0.fail_peer(id, "the processes have disconnected");
        let Some(peer) = self.0.peer_mut(id) else { return };
        peer.standing = Standing::Gone(Arc::from("the processes have disconnected"));
        peer.links.clear();
        self.0.timed.retain(|(peer, _)| *peer != id);
        self.0.observers.watched.forget(id);
    }
}
