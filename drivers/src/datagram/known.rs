//! The addresses of peers that the launcher has published.

use hashbrown::HashMap;
use nmad_engine::packet::PeerId;

/// Addresses of each known peer, with the numbers of its rails, the best first.
#[derive(Debug)]
pub struct Known<A>(HashMap<PeerId, Vec<(u8, A)>>);

impl<A> Default for Known<A> {
    fn default() -> Self {
        Known(HashMap::new())
    }
}

impl<A: PartialEq> Known<A> {
    /// Adds the address of a rail `remote` of a peer. The rail of the same number as `ours` is preferred, so
    /// that two rails on one network pair up in order.
    pub fn learn(&mut self, peer: PeerId, remote: u8, address: A, ours: u8) {
        let known = self.0.entry(peer).or_default();
        known.retain(|old| old.1 != address && old.0 != remote);
        known.push((remote, address));
        known.sort_by_key(|known| (known.0 != ours, known.0));
    }
}

impl<A> Known<A> {
    /// Returns the addresses of a peer.
    pub fn of(&self, peer: PeerId) -> &[(u8, A)] {
        self.0.get(&peer).map_or(&[], Vec::as_slice)
    }

    /// Returns the numbers of the rails of a peer.
    pub fn remotes(&self, peer: PeerId) -> Vec<u8> {
        self.of(peer).iter().map(|(rail, _)| *rail).collect()
    }

    /// Returns whether an address of any peer is such.
    pub fn has(&self, is_it: impl Fn(&A) -> bool) -> bool {
        self.0.values().flatten().any(|(_, address)| is_it(address))
    }

    /// Iterates over all known peers.
    pub fn ids(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.0.keys().copied()
    }
}
