//! The addresses of peers that the launcher has published: most of a large job are never used, so they take
//! little memory.

use nmad_engine::packet::PeerId;

/// Addresses of each known peer, with the numbers of its rails, the best first.
#[derive(Debug)]
pub struct Known<A> {
    /// Ascending by peer.
    list: Vec<Entry<A>>,
}

/// An address of a rail of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<A> {
    peer: PeerId,
    /// Number of that rail at the peer.
    pub rail: u8,
    /// Its address.
    pub address: A,
}

impl<A> Default for Known<A> {
    fn default() -> Self {
        Known { list: Vec::new() }
    }
}

impl<A: PartialEq + Clone> Known<A> {
    /// Adds the address of a rail `remote` of a peer. The rail of the same number as `ours` is preferred, so
    /// that two rails on one network pair up in order.
    pub fn learn(&mut self, peer: PeerId, remote: u8, address: A, ours: u8) {
        let (start, end) = self.range(peer);
        let is_kept = |old: &&Entry<A>| old.address != address && old.rail != remote;
        let mut all: Vec<Entry<A>> = self.list[start..end].iter().filter(is_kept).cloned().collect();
        all.push(Entry { peer, rail: remote, address });
        all.sort_by_key(|known| (known.rail != ours, known.rail));
        if self.list.len() == self.list.capacity() {
            // Twice the room, as a vector would take, is too much for the addresses of a large job.
            self.list.reserve_exact(self.list.len() / 8 + 1);
        }
        self.list.splice(start..end, all);
    }
}

impl<A> Known<A> {
    /// Returns where the addresses of a peer are, or would be.
    fn range(&self, peer: PeerId) -> (usize, usize) {
        let start = self.list.partition_point(|entry| entry.peer.0 < peer.0);
        let own = self.list[start..].iter().take_while(|entry| entry.peer == peer).count();
        (start, start + own)
    }

    /// Returns the addresses of a peer.
    pub fn of(&self, peer: PeerId) -> &[Entry<A>] {
        let (start, end) = self.range(peer);
        &self.list[start..end]
    }

    /// Returns the numbers of the rails of a peer.
    pub fn remotes(&self, peer: PeerId) -> Vec<u8> {
        self.of(peer).iter().map(|known| known.rail).collect()
    }

    /// Returns whether an address of any peer is such.
    pub fn has(&self, is_it: impl Fn(&A) -> bool) -> bool {
        self.list.iter().any(|known| is_it(&known.address))
    }

    /// Iterates over all known peers.
    pub fn ids(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.list.chunk_by(|a, b| a.peer == b.peer).map(|all| all[0].peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_peer_come_the_best_first_whatever_the_order_in_which_they_are_learnt() {
        let mut known = Known::default();
        for (peer, rail, address) in [(7, 2, "c"), (3, 0, "x"), (7, 1, "b"), (9, 1, "y"), (7, 0, "a")] {
            known.learn(PeerId(peer), rail, address, 1);
        }
        assert_eq!(known.remotes(PeerId(7)), [1, 0, 2]);
        assert_eq!(known.of(PeerId(7))[0].address, "b");
        assert_eq!(known.ids().collect::<Vec<_>>(), [3, 7, 9].map(PeerId));
        // A rail has one address, and an address one rail: the latest.
        known.learn(PeerId(7), 1, "new", 1);
        known.learn(PeerId(7), 5, "a", 1);
        assert_eq!(known.remotes(PeerId(7)), [1, 2, 5]);
        assert!(known.has(|address| *address == "new") && !known.has(|address| *address == "b"));
        assert_eq!((known.of(PeerId(4)), known.remotes(PeerId(10))), (&[][..], vec![]));
    }
}
