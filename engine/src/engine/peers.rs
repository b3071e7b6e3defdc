//! All peers, by number.

use crate::engine::peer::Peer;
use crate::packet::{PeerId, RailId};
use crate::transfer::link::Link;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The peers by number; a number without a peer is one that was never added.
#[derive(Debug, Default)]
pub(crate) struct Peers(Vec<Option<Box<Peer>>>);

impl Peers {
    #[inline(always)]
    pub(crate) fn get(&self, id: PeerId) -> Option<&Peer> {
        self.0.get(id.0 as usize)?.as_deref()
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.0.get_mut(id.0 as usize)?.as_deref_mut()
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

    /// Returns the peer with this number, and makes it if it is new.
    pub(crate) fn get_or_insert(&mut self, id: PeerId, make: impl FnOnce() -> Peer) -> &mut Peer {
        let index = id.0 as usize;
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index].get_or_insert_with(|| Box::new(make()))
    }

    /// Returns the number that the next peer gets; numbers are never reused.
    pub(crate) fn next_id(&self) -> PeerId {
        PeerId(self.0.len() as u32)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.0.iter().flatten().map(|peer| &**peer)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.0.iter_mut().flatten().map(|peer| &mut **peer)
    }
}
