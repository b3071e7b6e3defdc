//! Which strangers keep a place, so that processes without the secret cannot take those of peers.
//!
//! | who | places |
//! |---|---|
//! | has said a sealed hello | until the bound; a few conversations for each rank that it claims to be |
//! | is silent, at the address of a peer | while there is room, at least for its patience |
//! | is silent, elsewhere | a part of the places; a new one takes that of the oldest |
//!
//! Peers say hello as soon as their connection stands, so of many that are silent the oldest is the least
//! likely to be one. Of connections, those that find no place wait in the kernel.

use super::stranger::Stranger;
use super::{Action, Id, Medium, Opening, Origin};
use log::Level;
use nmad_engine::packet::PeerId;
use std::net::IpAddr;

/// Age after which a silent stranger makes room for others, in milliseconds.
const PATIENCE_MS: u64 = 250;
/// The same for one of a host that has many silent ones, in milliseconds. The places of all then change
/// hands 2,500 times a second.
const SHORT_PATIENCE_MS: u64 = 50;
/// Silent strangers of one host that are many.
const MANY: usize = 32;
/// Conversations over connections in which one rank is claimed at once: its own one, and one that it has
/// given up and that has not ended here.
const CLAIMS: usize = 2;

impl Opening {
    /// Whether one more can be let in.
    pub fn has_room(&mut self, now_ms: u64) -> bool {
        if self.strangers.len() < self.medium.strangers_max() {
            return true;
        }
        let crowd = self.crowd();
        let is_old = |stranger: &&Stranger| {
            let is_of_crowd = crowd == Some(stranger.origin.host) || !stranger.origin.is_known;
            let patience_ms = if is_of_crowd { SHORT_PATIENCE_MS } else { PATIENCE_MS };
            stranger.is_silent() && now_ms >= stranger.since_ms + patience_ms
        };
        let oldest = self.strangers.iter().filter(is_old).min_by_key(|stranger| stranger.id);
        let Some(id) = oldest.map(|stranger| stranger.id) else { return false };
        self.make_room(id, now_ms);
        true
    }

    /// Somebody has come.
    pub fn accepted(&mut self, origin: Origin, now_ms: u64) -> Id {
        if !origin.is_known {
            self.bound_unknown(now_ms);
        }
        let id = self.begin();
        self.strangers.push(Stranger::new(id, origin, now_ms));
        id
    }

    /// Somebody has come whom the system tells to be none of this job's.
    pub fn turned_away(&mut self, why: &str, now_ms: u64) {
        self.note(Level::Warn, format!("turned away {why}"), now_ms);
    }

    /// The host of which so many are silent that they cannot all be peers.
    fn crowd(&self) -> Option<Option<IpAddr>> {
        let mut hosts: Vec<(Option<IpAddr>, usize)> = Vec::new();
        for Stranger { origin, .. } in self.strangers.iter().filter(|stranger| stranger.is_silent()) {
            match hosts.iter_mut().find(|(host, _)| *host == origin.host) {
                Some((_, count)) => *count += 1,
                None => hosts.push((origin.host, 1)),
            }
        }
        hosts
            .into_iter()
            .filter(|(_, count)| *count > MANY)
            .max_by_key(|(_, count)| *count)
            .map(|(host, _)| host)
    }

    /// Leaves room for one more of those that come from where no peer is.
    fn bound_unknown(&mut self, now_ms: u64) {
        let unknown =
            self.strangers.iter().filter(|stranger| stranger.is_silent() && !stranger.origin.is_known);
        if unknown.clone().count() >= self.medium.strangers_max() / 2
            && let Some(id) = unknown.min_by_key(|stranger| stranger.id).map(|stranger| stranger.id)
        {
            self.make_room(id, now_ms);
        }
    }

    /// The stranger in this conversation has claimed to be that peer: the oldest ones that did make room.
    /// Over datagrams another hello of a peer takes the place of the one before.
    pub(super) fn bound_claims(&mut self, peer: PeerId, id: Id) {
        let others = if self.medium == Medium::Connections { CLAIMS - 1 } else { 0 };
        let mut claims: Vec<_> =
            self.strangers.iter().filter(|s| s.claims() == Some(peer) && s.id != id).collect();
        claims.sort_by_key(|stranger| stranger.id);
        let replaced = &claims[..claims.len().saturating_sub(others)];
        replaced.iter().filter_map(|stranger| stranger.hello()).for_each(|hello| self.spent.add(&hello));
        let mut gone: Vec<_> =
            claims[..claims.len().saturating_sub(others)].iter().map(|stranger| stranger.id).collect();
        // Datagrams wait nowhere.
        if self.medium.loses() && self.strangers.len() - gone.len() > self.medium.strangers_max() {
            let rest = self.strangers.iter().filter(|s| s.id != id && !gone.contains(&s.id));
            gone.extend(rest.min_by_key(|stranger| stranger.id).map(|stranger| stranger.id));
        }
        self.drop_strangers(|stranger| gone.contains(&stranger.id));
    }

    fn make_room(&mut self, id: Id, now_ms: u64) {
        let Some(at) = self.stranger_in(id) else { return };
        let Stranger { origin, .. } = self.strangers.swap_remove(at);
        self.note(Level::Warn, format!("dropped silent {} to make room", origin.text), now_ms);
        self.actions.push_back(Action::Drop { id });
    }
}
