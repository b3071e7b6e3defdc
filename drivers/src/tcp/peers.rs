//! The peers of a rail: where they are, and the link to each that has one.

use super::address::Address;
use super::link::Link;
use hashbrown::HashMap;
use nmad_engine::packet::PeerId;
use std::cell::Cell;
use std::ops::{Index, IndexMut};

/// Every peer that this rail has heard of, by index. A peer keeps its index for the life of the rail.
#[derive(Debug, Default)]
pub struct Peers {
    list: Vec<Peer>,
    index: HashMap<PeerId, usize>,
    /// The last peer looked up: a caller that sends to a peer mostly sends to it again.
    last: Cell<Option<(PeerId, usize)>>,
}

/// One peer as seen from this rail.
#[derive(Debug)]
pub struct Peer {
    /// Who.
    pub id: PeerId,
    /// Where it listens, the best address first.
    pub known: Vec<Known>,
    /// The open link.
    pub link: Option<Box<Link>>,
}

/// An address of a peer that this rail may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Number of that rail at the peer.
    pub rail: u8,
    /// Where it listens.
    pub address: Address,
}

impl Peers {
    /// The index of a peer that was heard of.
    #[inline]
    pub fn find(&self, peer: PeerId) -> Option<usize> {
        if let Some((last, index)) = self.last.get()
            && last == peer
        {
            return Some(index);
        }
        let index = *self.index.get(&peer)?;
        self.last.set(Some((peer, index)));
        Some(index)
    }

    /// The index of a peer, which is new if need be.
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
    pub fn known(&self, peer: PeerId) -> &[Known] {
        self.find(peer).map_or(&[], |index| &self[index].known)
    }

    /// Every peer.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.list.iter_mut()
    }
}

impl Peer {
    /// Learns an address. The rail of the same number at the other side is the best, so that two rails on
    /// one subnet pair up in order.
    pub fn learn(&mut self, known: Known, rail: u8) {
        self.known.retain(|old| old.address != known.address && old.rail != known.rail);
        self.known.push(known);
        self.known.sort_by_key(|known| (known.rail != rail, known.rail));
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
