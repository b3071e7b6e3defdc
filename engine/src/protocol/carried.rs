//! Blocks that travel with a request to send ([`super::blocks`]): those of a send, those that wait for their
//! receive, and the rest of a receive.

use crate::collect::window::Entry;
use crate::memory::Segments;
use crate::packet::PeerId;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use nmad_wire::{Block, Blocks};

/// Blocks of a large message that travel with its request to send.
#[derive(Debug)]
pub(crate) struct Carried {
    places: Vec<Block>,
    /// The blocks, in the order of the message.
    data: Segments,
    /// The request to send is in the window, and refers to their memory.
    pub(crate) is_in_window: bool,
}

impl Carried {
    /// Makes blocks at these places of a message.
    pub(crate) fn new(places: Vec<Block>, data: Segments) -> Self {
        Carried { places, data, is_in_window: false }
    }

    /// Returns the number of blocks.
    pub(crate) fn count(&self) -> u64 {
        self.places.len() as u64
    }

    /// Returns their bytes.
    pub(crate) fn len(&self) -> u64 {
        self.data.len()
    }

    /// Puts the places of the blocks behind a request to send, and makes the entry that carries them.
    pub(crate) fn enter(&mut self, mut frame: Vec<u8>, make: impl FnOnce(Vec<u8>) -> Entry) -> Entry {
        Blocks::encode_places(&self.places, &mut frame);
        self.is_in_window = true;
        make(frame).with_blocks(self.data.clone())
    }
}

/// Memory and length of the part of a message that comes behind its blocks.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) into: Segments,
    pub(crate) len: u64,
}

/// Places and bytes of the blocks of one message, as [`Blocks`] has them.
pub(crate) type Stored = (Box<[u8]>, Box<[u8]>);

/// Blocks of messages that match no receive yet, by sender and its request.
#[derive(Debug, Default)]
pub(crate) struct StoredBlocks(BTreeMap<(PeerId, u64), Stored>);

impl StoredBlocks {
    /// Stores the blocks of a message.
    pub(crate) fn store(&mut self, from: PeerId, theirs: u64, blocks: Blocks<'_>) {
        self.0.insert((from, theirs), (Box::from(blocks.encoded_places()), Box::from(blocks.data())));
    }

    /// Removes and returns the places and the bytes of the blocks of a message.
    pub(crate) fn take(&mut self, from: PeerId, theirs: u64) -> Option<Stored> {
        self.0.remove(&(from, theirs))
    }

    /// Whether no blocks are stored.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes that are stored of this message.
    pub(crate) fn len_of(&self, from: PeerId, theirs: u64) -> u64 {
        self.0.get(&(from, theirs)).map_or(0, |(_, data)| data.len() as u64)
    }

    /// Drops the blocks of messages of a peer that `is_kept` does not name.
    pub(crate) fn retain(&mut self, from: PeerId, is_kept: impl Fn(u64) -> bool) {
        self.0.retain(|&(peer, theirs), _| peer != from || is_kept(theirs));
    }
}
