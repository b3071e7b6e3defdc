//! Profiles to links: what the measured thresholds are for each peer.

use crate::clock::Instant;
use crate::config::Config;
use crate::engine::Engine;
use crate::engine::fixed::Fixed;
use crate::engine::peer::{Peer, view};
use crate::packet::{PeerId, RailId};
use crate::profile::forecast::Forecast;
use crate::profile::measured::Profile;
use crate::profile::threshold::UNEXPECTED_MAX;
use crate::schedule::strategy::{RailView, Shares};
use crate::schedule::wire;
use crate::transfer::link::Link;
use crate::transfer::rail::{BANDWIDTH_GUESS, Rail};
use alloc::sync::Arc;
use alloc::vec::Vec;

impl Engine {
    /// What this rail was measured to do, between this host and one peer, or, without a peer, between this
    /// host and all that it leads to, also those that are added later. Without any, nominal figures count.
    pub fn set_profile(&mut self, rail: RailId, peer: Option<PeerId>, profile: Arc<Profile>) {
        if peer.is_none()
            && let Some(rail) = self.rails.get_mut(rail.index())
        {
            rail.profile = Some(profile.clone());
        }
        for other in self.peers.iter_mut().flatten().filter(|p| peer.is_none_or(|id| p.id == id)) {
            if let Some(link) = other.link_mut(rail) {
                link.forecast = Forecast::new(profile.clone());
                link.learning = None;
                other.topology_changed(&self.rails);
            }
        }
    }

    /// Measures one rail to a peer: until it is called again with none, everything goes over this rail as if
    /// it were the only one, so nothing is kept for another to send again. To be called by both sides when
    /// nothing is under way between them. If the rail dies meanwhile, messages of the measurement are lost.
    pub fn measure(&mut self, peer: PeerId, rail: Option<RailId>) {
        if let Some(peer) = self.peers.get_mut(peer.0 as usize).and_then(|p| p.as_deref_mut()) {
            peer.only = rail;
            peer.topology_changed(&self.rails);
        }
    }

    /// The forecast of a rail to a peer; none if the rail does not lead there.
    pub fn forecast(&self, rail: RailId, peer: PeerId) -> Option<&Forecast> {
        Some(&self.peer(peer)?.link(rail)?.forecast)
    }

    /// Longest message to a peer that is sent without asking, in bytes; none if it is unknown.
    pub fn eager_max(&self, peer: PeerId) -> Option<usize> {
        Some(self.peer(peer)?.eager_max)
    }
}

impl Peer {
    /// Links without a profile are judged by nominal figures; one without even those like the slowest other.
    pub(crate) fn forecast_anew(&mut self, rails: &[Rail]) {
        let limits = |link: &Link| rails[link.rail.index()].limits;
        let known = self.links.iter().map(|link| limits(link).bandwidth).filter(|&bandwidth| bandwidth > 0);
        let guess = known.min().unwrap_or(BANDWIDTH_GUESS);
        for link in self.links.iter_mut().filter(|link| !link.forecast.is_measured()) {
            let limits = limits(link);
            link.forecast = match &rails[link.rail.index()].profile {
                Some(profile) => Forecast::new(profile.clone()),
                None if limits.bandwidth > 0 || guess == BANDWIDTH_GUESS => {
                    rails[link.rail.index()].nominal.fresh()
                }
                None => Forecast::nominal(limits.latency_ns, 0, guess),
            };
        }
    }

    /// Derives what governs the paths: what the user has set, else what was measured, else a default.
    pub(crate) fn derive_thresholds(&mut self, rails: &[Rail]) {
        // A measurement shall find what it measures, and nothing else.
        self.is_curious = self.only.is_none() && (self.is_curious || self.is_new());
        let Fixed { eager_max, in_place_min, aggregate_max, .. } = self.fixed;
        let bytes = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        for link in &mut self.links {
            let measured = link.forecast.profile().thresholds();
            let in_place = measured.map_or(Config::IN_PLACE_MIN, |t| bytes(t.in_place_min));
            let aggregate = measured.map_or(usize::MAX, |t| bytes(t.aggregate_max));
            link.in_place_min = in_place_min.unwrap_or(in_place);
            link.block_min = measured.map_or(Config::BLOCK_MIN, |t| bytes(t.block_min));
            link.aggregate_max = aggregate_max.unwrap_or(aggregate);
        }
        // Where packets pass, whatever fits into one does: no other way has less ado.
        let passes = self.may_inject.then_some(usize::MAX);
        // Messages that fit into no packet were not measured: the user says so if they shall go without
        // asking.
        let longest = self.longest_eager();
        let mut derived = || passes.or_else(|| self.measured_eager_max(rails)).unwrap_or(Config::EAGER_MAX);
        self.eager_max = eager_max.unwrap_or_else(|| derived().min(longest));
        self.derive_reads();
        self.mark_lane(rails);
        self.derive_parallel(rails);
    }

    /// The rendezvous threshold of P4 for all open rails together; none if one of them was not measured. One
    /// rail has its own. Several may share what is announced but not what is not, and keep copies: the
    /// shortest message for which the handshake and the shares of the strategy take less time than the best
    /// rail and the copy of the unexpected.
    fn measured_eager_max(&mut self, rails: &[Rail]) -> Option<usize> {
        let Peer { links, strategy, primary, fastest, may_push, .. } = self;
        let open = || links.iter().filter(|link| link.is_up());
        if !open().all(|link| link.forecast.is_measured()) {
            return None;
        }
        let first = open().next().or(links.iter().find(|link| link.is_there()))?;
        if open().count() <= 1 {
            let thresholds = first.forecast.profile().thresholds()?;
            let is_pushed = may_push.is_some() && thresholds.push_min != u64::MAX;
            let large_min = if is_pushed { thresholds.push_min } else { thresholds.rendezvous_min };
            return Some(large_min.saturating_sub(1) as usize);
        }
        let start = Instant::default();
        let mut views: Vec<RailView> =
            open().map(|link| view(start, link, rails, *primary, *fastest)).collect();
        // What thresholds say is about rails that have nothing else to do.
        views.iter_mut().for_each(|view| view.idle_at = start);
        let memcpy = views.iter().find_map(|view| view.forecast.profile().memcpy());
        let handshake_ns = views.iter().map(|view| view.forecast.profile().handshake_ns()).min()?;
        // Each rail of several opens the receive region too, is posted to and looked at: a short message's
        // work. For the first one that is measured; but where a message may have to be sent again there is a
        // Fin.
        let further_ns = views.iter().map(|view| view.forecast.profile().eager().start_ns()).min()?;
        let mut announcing_pays = |len: u64| {
            let eager_ns = views.iter().map(|view| view.forecast.eager_ns(len)).min().unwrap_or(0);
            let shares = wire::split(&mut **strategy, start, len, &views);
            let count = if let Shares::Fixed(shares) = &shares { shares.len() as u64 } else { 1 };
            let is_shared = count > 1;
            let handshake_ns = handshake_ns + if is_shared { count * further_ns } else { 0 };
            // A share that pays pays also where the message is expected, and not copied once more.
            let copy_ns = memcpy.filter(|_| !is_shared).map_or(0, |curve| curve.ns(len));
            let body_ns = match shares {
                Shares::FirstIdle => views.iter().map(|view| view.forecast.body_ns(len)).min(),
                Shares::Fixed(shares) => {
                    let of = |view: &RailView| shares.iter().find(|share| share.0 == view.rail);
                    views.iter().filter_map(|view| Some(view.forecast.body_ns(of(view)?.1))).max()
                }
            };
            handshake_ns + body_ns.unwrap_or(0) < eager_ns + copy_ns
        };
        let (mut below, mut above) = (0, UNEXPECTED_MAX);
        while above - below > 1 {
            let middle = (below + above) / 2;
            if announcing_pays(middle) { above = middle } else { below = middle }
        }
        Some(below as usize)
    }
}
