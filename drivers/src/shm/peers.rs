//! The peers of a rail: their addresses, and the open links.

use crate::shm::address::Address;
use crate::shm::link::Link;
use hashbrown::HashMap;
use nmad_engine::packet::PeerId;

/// The peers of this rail: the addresses of all, and the links.
#[derive(Debug, Default)]
pub struct Peers {
    /// The number of each peer's rail, and its address. A node has few ranks of a large job.
    known: HashMap<PeerId, (u8, Address)>,
    /// By rank, up to the highest that ever had a link.
    links: Vec<Option<Box<Link>>>,
    /// Ranks of the peers that have a link.
    open: Vec<usize>,
}

impl Peers {
    #[inline]
    pub fn link(&self, peer: PeerId) -> Option<&Link> {
        self.links.get(peer.0 as usize)?.as_deref()
    }

    #[inline]
    pub fn link_mut(&mut self, peer: PeerId) -> Option<&mut Link> {
        self.links.get_mut(peer.0 as usize)?.as_deref_mut()
    }

    /// Ranks of the peers that have a link.
    #[inline]
    pub fn open(&self) -> &[usize] {
        &self.open
    }

    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.open.iter().filter_map(|rank| self.links[*rank].as_deref())
    }

    pub fn insert(&mut self, peer: PeerId, link: Box<Link>) {
        let rank = peer.0 as usize;
        if rank >= self.links.len() {
            self.links.resize_with(rank + 1, || None);
        }
        self.links[rank] = Some(link);
        self.open.push(rank);
    }

    pub fn remove(&mut self, peer: PeerId) -> Option<Box<Link>> {
        let link = self.links.get_mut(peer.0 as usize)?.take()?;
        self.open.retain(|rank| *rank != peer.0 as usize);
        Some(link)
    }

    /// The number of the peer's rail, and its address.
    pub fn known(&self, peer: PeerId) -> Option<&(u8, Address)> {
        self.known.get(&peer)
    }

    pub fn learn(&mut self, peer: PeerId, rail: u8, address: Address) {
        self.known.insert(peer, (rail, address));
    }
}
