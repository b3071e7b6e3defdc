//! All peers, by number. A peer that can be reached is made when something is first done with it: until then
//! it takes 10 B.

use crate::engine::peer::Peer;
use crate::packet::{PeerId, RailId};
use crate::transfer::link::Link;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The peers by number; a number without a peer was never added, or is only in reach.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    made: Vec<Option<Box<Peer>>>,
    /// By the same number: the rails over which a peer that is not made can be reached, a bit for each.
    reach: Vec<u16>,
}

const _: () = assert!(nmad_wire::MAX_RAILS <= u16::BITS as usize);

impl Peers {
    #[inline(always)]
    pub(crate) fn get(&self, id: PeerId) -> Option<&Peer> {
        self.made.get(id.0 as usize)?.as_deref()
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.made.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// Returns the link of a rail to a peer.
    #[inline]
    pub(crate) fn link(&self, id: PeerId, rail: RailId) -> Option<&Link> {
        self.get(id)?.link(rail)
    }

    #[inline]
    pub(crate) fn link_mut(&mut self, id: PeerId, rail: RailId) -> Option<&mut Link> {
        self.get_mut(id)?.link_mut(rail)
    }

    /// Notes that a peer that is not made can be reached over this rail.
    pub(crate) fn note(&mut self, id: PeerId, rail: RailId) {
        let index = id.0 as usize;
        if self.made.len() <= index {
            self.made.resize_with(index + 1, || None);
            self.reach.resize(index + 1, 0);
        }
        self.reach[index] |= 1 << rail.0;
    }

    /// Returns the rails over which a peer that is not made can be reached, ascending.
    pub(crate) fn in_reach(&self, id: PeerId) -> impl Iterator<Item = RailId> + use<> {
        let index = id.0 as usize;
        let is_made = self.made.get(index).is_some_and(Option::is_some);
        let rails = if is_made { 0 } else { self.reach.get(index).copied().unwrap_or(0) };
        (0..u16::BITS as u8).filter(move |rail| rails & (1 << rail) != 0).map(RailId)
    }

    /// Adds a peer that was in reach.
    pub(crate) fn insert(&mut self, peer: Peer) {
        let index = peer.id.0 as usize;
        self.made[index] = Some(Box::new(peer));
    }

    /// Returns the number that the next peer gets; numbers are never reused.
    pub(crate) fn next_id(&self) -> PeerId {
        PeerId(self.made.len() as u32)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.made.iter().flatten().map(|peer| &**peer)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.made.iter_mut().flatten().map(|peer| &mut **peer)
    }
}
