//! The peers of a rail: their addresses, and the open links.

use super::link::Link;
use crate::tcp::address::Address;
use hashbrown::HashMap;
use nmad_engine::packet::PeerId;
use std::net::SocketAddr;
use std::ops::{Index, IndexMut};

/// Every known peer of this rail, by index. A peer keeps its index for the life of the rail.
#[derive(Debug, Default)]
pub struct Peers {
    list: Vec<Peer>,
    index: HashMap<PeerId, usize>,
}

/// One peer as seen from this rail.
#[derive(Debug)]
pub struct Peer {
    /// Rank of the peer.
    pub id: PeerId,
    /// Numbers of its rails with their addresses, the best first.
    pub known: Vec<(u8, Address)>,
    /// The open link.
    pub link: Option<Box<Link>>,
}

impl Peers {
    /// The index of a known peer.
    #[inline]
    pub fn find(&self, peer: PeerId) -> Option<usize> {
        self.index.get(&peer).copied()
    }

    /// The index of a peer, which is added if it is new.
    pub fn find_or_add(&mut self, peer: PeerId) -> usize {
        *self.index.entry(peer).or_insert_with(|| {
            self.list.push(Peer { id: peer, known: Vec::new(), link: None });
            self.list.len() - 1
        })
    }

    /// The link to a peer, if there is one.
    pub fn link(&self, peer: PeerId) -> Option<&Link> {
        self[self.find(peer)?].link.as_deref()
    }

    /// The addresses of a peer, the best first.
    pub fn known(&self, peer: PeerId) -> &[(u8, Address)] {
        self.find(peer).map_or(&[], |index| &self[index].known)
    }

    /// Returns whether a peer has this address.
    pub fn is_one_at(&self, from: SocketAddr) -> bool {
        self.list.iter().flat_map(|peer| &peer.known).any(|(_, address)| address.socket == from)
    }

    /// All known peers.
    pub fn ids(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.list.iter().map(|peer| peer.id)
    }

    /// The indices of the peers that have a link.
    pub fn linked(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.list.len()).filter(|&index| self.list[index].link.is_some())
    }
}

impl Peer {
    /// Adds an address. The rail of the same number at the other side is preferred, so that two rails on
    /// one subnet pair up in order.
    pub fn learn(&mut self, remote: u8, address: Address, rail: u8) {
        self.known.retain(|old| old.1 != address && old.0 != remote);
        self.known.push((remote, address));
        self.known.sort_by_key(|known| (known.0 != rail, known.0));
    }
}

impl Index<usize> for Peers {
    type Output = Peer;

    #[inline]
    fn index(&self, index: usize) -> &Peer {
        &self.list[index]
    }
}

impl IndexMut<usize> for Peers {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Peer {
        &mut self.list[index]
    }
}
