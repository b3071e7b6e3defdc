//! The peers of a rail: their addresses, and the open links.

use crate::shm::address::Address;
use crate::shm::link::Link;
use nmad_engine::packet::PeerId;

/// Every known peer of this rail, by rank.
#[derive(Debug, Default)]
pub struct Peers {
    list: Vec<Peer>,
    /// Ranks of the peers that have a link.
    open: Vec<usize>,
}

#[derive(Debug, Default)]
struct Peer {
    /// The number of the peer's rail, and its address.
    known: Option<(u8, Address)>,
    link: Option<Box<Link>>,
}

impl Peers {
    #[inline]
    pub fn link(&self, peer: PeerId) -> Option<&Link> {
        self.list.get(peer.0 as usize)?.link.as_deref()
    }

    #[inline]
    pub fn link_mut(&mut self, peer: PeerId) -> Option<&mut Link> {
        self.list.get_mut(peer.0 as usize)?.link.as_deref_mut()
    }

    /// Ranks of the peers that have a link.
    #[inline]
    pub fn open(&self) -> &[usize] {
        &self.open
    }

    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.open.iter().filter_map(|rank| self.list[*rank].link.as_deref())
    }

    pub fn insert(&mut self, peer: PeerId, link: Box<Link>) {
        let rank = peer.0 as usize;
        self.of(peer).link = Some(link);
        self.open.push(rank);
    }

    pub fn remove(&mut self, peer: PeerId) -> Option<Box<Link>> {
        let link = self.list.get_mut(peer.0 as usize)?.link.take()?;
        self.open.retain(|rank| *rank != peer.0 as usize);
        Some(link)
    }

    /// The number of the peer's rail, and its address.
    pub fn known(&self, peer: PeerId) -> Option<&(u8, Address)> {
        self.list.get(peer.0 as usize)?.known.as_ref()
    }

    pub fn learn(&mut self, peer: PeerId, rail: u8, address: Address) {
        self.of(peer).known = Some((rail, address));
    }

    fn of(&mut self, peer: PeerId) -> &mut Peer {
        let rank = peer.0 as usize;
        if rank >= self.list.len() {
            self.list.resize_with(rank + 1, Peer::default);
        }
        &mut self.list[rank]
    }
}
