//! The peers of a rail: their addresses, and the open links.

use super::address::Address;
use super::config::TcpConfig;
use hashbrown::{HashMap, HashSet};
use nmad_engine::packet::PeerId;
use std::cell::Cell;
use std::net::IpAddr;
use std::ops::{Index, IndexMut};

/// The part of a link on which opening another one depends.
pub(crate) trait Remote {
    /// Number of the peer's rail.
    fn remote(&self) -> u8;
}

/// Every known peer of this rail, by index. A peer keeps its index for the life of the rail.
#[derive(Debug)]
pub struct Peers<L> {
    list: Vec<Peer<L>>,
    index: HashMap<PeerId, usize>,
    /// All addresses that peers have ever listened on.
    hosts: HashSet<IpAddr>,
    /// The last peer looked up: most callers send to the same peer again.
    last: Cell<Option<(PeerId, usize)>>,
}

/// One peer as seen from this rail.
#[derive(Debug)]
pub struct Peer<L> {
    /// Rank of the peer.
    pub id: PeerId,
    /// Its listening addresses, the best first.
    pub known: Vec<Known>,
    /// The open link.
    pub link: Option<Box<L>>,
}

/// An address of a peer that may be reachable from this rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Number of that rail at the peer.
    pub rail: u8,
    /// The listening address.
    pub address: Address,
}

impl<L> Default for Peers<L> {
    fn default() -> Self {
        Peers { list: Vec::new(), index: HashMap::new(), hosts: HashSet::new(), last: Cell::new(None) }
    }
}

impl<L> Peers<L> {
    /// The index of a known peer.
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

    /// The index of a peer, which is added if it is new.
    pub fn find_or_add(&mut self, peer: PeerId) -> usize {
        *self.index.entry(peer).or_insert_with(|| {
            self.list.push(Peer { id: peer, known: Vec::new(), link: None });
            self.list.len() - 1
        })
    }

    /// Adds the listening address of a peer's rail, as published by the peer; false: it is not reachable
    /// from here.
    pub fn know(
        &mut self,
        config: &TcpConfig,
        own: &Address,
        (peer, rail, address): (PeerId, u8, &str),
    ) -> bool {
        let Ok(address) = address.parse::<Address>() else { return false };
        let is_reachable = own.same_subnet(&address) || config.routed;
        if is_reachable {
            let index = self.find_or_add(peer);
            self.hosts.insert(address.socket.ip());
            self[index].learn(Known { rail, address }, config.rail);
        }
        is_reachable
    }

    /// The link to a peer, if there is one.
    pub fn link(&self, peer: PeerId) -> Option<&L> {
        self[self.find(peer)?].link.as_deref()
    }

    /// The addresses of a peer, the best first.
    pub fn known(&self, peer: PeerId) -> &[Known] {
        self.find(peer).map_or(&[], |index| &self[index].known)
    }

    /// Returns whether a peer listens at this address.
    pub fn is_one_at(&self, host: IpAddr) -> bool {
        self.hosts.contains(&host)
    }

    /// All peers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer<L>> {
        self.list.iter_mut()
    }
}

impl<L> Peer<L> {
    /// Adds an address. The rail of the same number at the other side is preferred, so that two rails on
    /// one subnet pair up in order.
    pub fn learn(&mut self, known: Known, rail: u8) {
        self.known.retain(|old| old.address != known.address && old.rail != known.rail);
        self.known.push(known);
        self.known.sort_by_key(|known| (known.rail != rail, known.rail));
    }
}

impl<L> Index<usize> for Peers<L> {
    type Output = Peer<L>;

    #[inline]
    fn index(&self, index: usize) -> &Peer<L> {
        &self.list[index]
    }
}

impl<L> IndexMut<usize> for Peers<L> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Peer<L> {
        &mut self.list[index]
    }
}
