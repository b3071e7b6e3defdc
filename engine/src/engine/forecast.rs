//! Profiles to links: what the measured thresholds are for each peer.

use super::peer::Peer;
use super::{Config, Engine};
use crate::packet::{PeerId, RailId};
use crate::profile::forecast::Forecast;
use crate::profile::measured::Profile;
use crate::transfer::link::{Link, State};
use crate::transfer::rail::Rail;
use alloc::sync::Arc;

/// A bandwidth of which nothing is known for any rail, in bytes per second: then all count the same.
const BANDWIDTH_GUESS: u64 = 1_000_000_000;

/// Thresholds that the user has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed {
    eager_max: Option<usize>,
    in_place_min: Option<usize>,
    aggregate_max: Option<usize>,
}

impl Fixed {
    pub(super) fn of(config: &Config) -> Fixed {
        let Config { eager_max, in_place_min, aggregate_max, .. } = *config;
        Fixed { eager_max, in_place_min, aggregate_max }
    }
}

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

    /// What is expected of a rail to a peer; none if the rail does not lead there.
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
    pub(super) fn forecast_anew(&mut self, rails: &[Rail]) {
        let limits = |link: &Link| rails[link.rail.index()].limits;
        let known = self.links.iter().map(|link| limits(link).bandwidth).filter(|&bandwidth| bandwidth > 0);
        let guess = known.min().unwrap_or(BANDWIDTH_GUESS);
        for link in self.links.iter_mut().filter(|link| !link.forecast.is_measured()) {
            let limits = limits(link);
            link.forecast = match &rails[link.rail.index()].profile {
                Some(profile) => Forecast::new(profile.clone()),
                None => Forecast::nominal(limits.latency_ns, limits.bandwidth, guess),
            };
        }
    }

    /// Derives what governs the paths: what the user has set, else what was measured, else a default.
    pub(super) fn derive_thresholds(&mut self) {
        let Fixed { eager_max, in_place_min, aggregate_max } = self.fixed;
        let bytes = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        for link in &mut self.links {
            let measured = link.forecast.profile().thresholds();
            let in_place = measured.map_or(Config::IN_PLACE_MIN, |t| bytes(t.in_place_min));
            let aggregate = measured.map_or(usize::MAX, |t| bytes(t.aggregate_max));
            link.in_place_min = in_place_min.unwrap_or(in_place);
            link.aggregate_max = aggregate_max.unwrap_or(aggregate);
        }
        // Short messages go over the fastest rail, so its threshold counts.
        let fastest = self.link(self.fastest).filter(|link| link.state != State::Dead);
        let measured = fastest.and_then(|link| link.forecast.profile().thresholds());
        let eager = measured.map_or(Config::EAGER_MAX, |t| bytes(t.rendezvous_min.saturating_sub(1)));
        self.eager_max = eager_max.unwrap_or(eager);
    }
}
