//! Places for strangers: processes without the secret cannot take the places of peers.
//!
//! | stranger | keeps its place |
//! |---|---|
//! | has sent a valid hello | until its connection ends (datagrams: the time limit); a few for each rank |
//! | is silent, at the address of a peer | while there is room, but at least for `PATIENCE_MS` |
//! | is silent, elsewhere | a part of the places; a new one replaces the oldest |
//!
//! Peers send a hello as soon as their connection is established, so of many silent strangers the oldest is
//! the least likely to be a peer. Connections without a place wait in the kernel.

use super::stranger::Stranger;
use super::{Action, Id, Medium, Opening, Origin};
use log::Level;
use nmad_engine::packet::PeerId;
use std::net::IpAddr;

/// Age after which a silent stranger may be dropped to make room, in milliseconds.
const PATIENCE_MS: u64 = 250;
/// That age for a host with many silent strangers, in milliseconds. All places together can then be
/// reassigned 2,500 times a second.
const SHORT_PATIENCE_MS: u64 = 50;
/// Number of silent strangers of one host that counts as many.
const MANY: usize = 32;
/// Conversations over connections in which one rank is claimed at once: its current one, and one that it
/// has closed and whose end has not been noticed here.
const CLAIMS: usize = 2;

impl Opening {
    /// Returns whether another stranger can be accepted; may drop a silent one.
    pub fn has_room(&mut self, now_ms: u64) -> bool {
        if self.strangers.len() < self.medium.strangers_max() {
            return true;
        }
        let crowd = self.busiest_host();
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

    /// Adds a stranger.
    pub fn accepted(&mut self, origin: Origin, now_ms: u64) -> Id {
        if !origin.is_known {
            self.bound_unknown(now_ms);
        }
        let id = self.begin();
        self.strangers.push(Stranger::new(id, origin, now_ms));
        id
    }

    /// Logs a process that the driver has turned away, because the system identifies it as foreign to the
    /// job.
    pub fn rejected(&mut self, why: &str, now_ms: u64) {
        self.note(Level::Warn, format!("rejected {why}"), now_ms);
    }

    /// The host with so many silent strangers that they cannot all be peers.
    fn busiest_host(&self) -> Option<Option<IpAddr>> {
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

    /// Makes room for another stranger from an unknown address.
    fn bound_unknown(&mut self, now_ms: u64) {
        let unknown =
            self.strangers.iter().filter(|stranger| stranger.is_silent() && !stranger.origin.is_known);
        if unknown.clone().count() >= self.medium.strangers_max() / 2
            && let Some(id) = unknown.min_by_key(|stranger| stranger.id).map(|stranger| stranger.id)
        {
            self.make_room(id, now_ms);
        }
    }

    /// Handles a stranger's claim to be that peer: the oldest strangers with the same claim are dropped.
    /// Over datagrams a second hello of a peer replaces the first one.
    pub(super) fn bound_claims(&mut self, peer: PeerId, id: Id) {
        let others = if self.medium == Medium::Connections { CLAIMS - 1 } else { 0 };
        let mut claims: Vec<_> =
            self.strangers.iter().filter(|s| s.claims() == Some(peer) && s.id != id).collect();
        claims.sort_by_key(|stranger| stranger.id);
        let replaced = &claims[..claims.len().saturating_sub(others)];
        replaced.iter().filter_map(|stranger| stranger.hello()).for_each(|hello| self.spent.add(&hello));
        let mut gone: Vec<_> = replaced.iter().map(|stranger| stranger.id).collect();
        // Datagrams do not wait in the kernel for a place.
        if self.medium.loses() && self.strangers.len() - gone.len() > self.medium.strangers_max() {
            let rest = self.strangers.iter().filter(|s| s.id != id && !gone.contains(&s.id));
            gone.extend(rest.min_by_key(|stranger| stranger.id).map(|stranger| stranger.id));
        }
        self.drop_strangers(|stranger| gone.contains(&stranger.id));
    }

    fn make_room(&mut self, id: Id, now_ms: u64) {
        let Some(at) = self.stranger_in(id) else { return };
        let Stranger { origin, .. } = self.strangers.swap_remove(at);
        self.note(Level::Warn, format!("dropped {}, which was silent, to make room", origin.text), now_ms);
        self.actions.push_back(Action::Drop { id });
    }
}
