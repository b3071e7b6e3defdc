//! Open receive regions of one rail: they map the keys of arriving chunks to memory.

use hashbrown::HashMap;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, PeerId, RegionId};

/// The open receive regions of a rail. A key is used once only, so a late chunk for a closed receive region
/// can never be written into another one.
#[derive(Debug, Default)]
pub struct Regions {
    open: HashMap<RegionId, Region>,
    keys: u64,
}

#[derive(Debug)]
struct Region {
    from: PeerId,
    key: Key,
    into: Segments,
}

/// The error of a chunk that reaches past the end of its receive region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastEnd;

impl Regions {
    /// Opens a receive region for chunks from one peer.
    pub fn open(&mut self, region: RegionId, from: PeerId, into: Segments) -> Key {
        self.keys += 1;
        let key = Key(self.keys);
        self.open.insert(region, Region { from, key, into });
        key
    }

    /// Returns the peer for which a receive region is open.
    pub fn peer(&self, region: RegionId) -> Option<PeerId> {
        self.open.get(&region).map(|region| region.from)
    }

    /// Closes a receive region; returns the peer for which it was open.
    pub fn close(&mut self, region: RegionId) -> Option<PeerId> {
        self.open.remove(&region).map(|region| region.from)
    }

    /// The key of a receive region, if it is open for this peer.
    pub fn key(&self, from: PeerId, region: RegionId) -> Option<Key> {
        self.open.get(&region).filter(|region| region.from == from).map(|region| region.key)
    }

    /// Returns whether no region is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the memory for `len` bytes at `offset` of a receive region; none if the region is not open
    /// for this peer and key.
    ///
    /// # Errors
    /// The range is not inside the receive region.
    #[inline]
    pub fn find(
        &self,
        from: PeerId,
        region: RegionId,
        key: Key,
        offset: u64,
        len: u64,
    ) -> Result<Option<Segments>, PastEnd> {
        let Some(found) = self.open.get(&region).filter(|l| l.key == key && l.from == from) else {
            return Ok(None);
        };
        match offset.checked_add(len) {
            Some(end) if end <= found.into.len() => Ok(Some(found.into.slice(offset, len))),
            _ => Err(PastEnd),
        }
    }
}
