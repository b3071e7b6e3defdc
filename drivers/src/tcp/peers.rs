//! The peers of a rail: their addresses, and the open links.

use super::address::Address;
use super::config::TcpConfig;
use crate::known::Known;
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

/// The peers of this rail: the addresses of all, and by index those that ever had a link. A peer keeps its
/// index for the life of the rail.
#[derive(Debug)]
pub struct Peers<L> {
    known: Known<Address>,
    list: Vec<Peer<L>>,
    index: HashMap<PeerId, usize>,
    /// All addresses that peers have ever listened on.
    hosts: HashSet<IpAddr>,
    /// The last peer looked up: most callers send to the same peer again.
    last: Cell<Option<(PeerId, usize)>>,
}

/// A peer that has or had a link.
#[derive(Debug)]
pub struct Peer<L> {
    /// Rank of the peer.
    pub id: PeerId,
    /// The open link.
    pub link: Option<Box<L>>,
}

impl<L> Default for Peers<L> {
    fn default() -> Self {
        let (list, index, hosts) = (Vec::new(), HashMap::new(), HashSet::new());
        Peers { known: Known::default(), list, index, hosts, last: Cell::new(None) }
    }
}

impl<L> Peers<L> {
    /// The index of a peer that has or had a link.
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
            self.list.push(Peer { id: peer, link: None });
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
            self.hosts.insert(address.ip);
            self.known.learn(peer, rail, address, config.rail);
        }
        is_reachable
    }

    /// The link to a peer, if there is one.
    pub fn link(&self, peer: PeerId) -> Option<&L> {
        self[self.find(peer)?].link.as_deref()
    }

    /// The addresses of peers that may be reachable from this rail.
    pub fn known(&self) -> &Known<Address> {
        &self.known
    }

    /// The peers with a known address, and those that have or had a link: a peer may have opened one from an
    /// address that does not reach this rail.
    pub fn ids(&self) -> impl Iterator<Item = PeerId> + '_ {
        let unknown = self.list.iter().map(|peer| peer.id).filter(|&id| self.known.of(id).is_empty());
        self.known.ids().chain(unknown)
    }

    /// Returns whether a peer listens at this address.
    pub fn is_one_at(&self, host: IpAddr) -> bool {
        self.hosts.contains(&host)
    }

    /// All peers that have or had a link.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer<L>> {
        self.list.iter_mut()
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
