//! Landings that are open on one rail: where the bytes of arriving chunks belong.

use hashbrown::HashMap;
use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, LandingId, PeerId};

/// The open landings of a rail. A key is given out once only, so a chunk that was on its way to a landing
/// that has been closed can never fall into another one.
#[derive(Debug, Default)]
pub struct Landings {
    open: HashMap<LandingId, Landing>,
    keys: u64,
}

#[derive(Debug)]
struct Landing {
    from: PeerId,
    key: Key,
    into: Segments,
}

/// A chunk reaches past the end of its landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastEnd;

impl Landings {
    /// Opens a landing for chunks from one peer.
    pub fn open(&mut self, landing: LandingId, from: PeerId, into: Segments) -> Key {
        self.keys += 1;
        let key = Key(self.keys);
        self.open.insert(landing, Landing { from, key, into });
        key
    }

    /// Forgets a landing; says for which peer it was open.
    pub fn close(&mut self, landing: LandingId) -> Option<PeerId> {
        self.open.remove(&landing).map(|landing| landing.from)
    }

    /// The key of a landing, if it is open for this peer.
    pub fn key(&self, from: PeerId, landing: LandingId) -> Option<Key> {
        self.open.get(&landing).filter(|landing| landing.from == from).map(|landing| landing.key)
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The memory for `len` bytes at `offset` of a landing; none if it is not open for this peer and key.
    ///
    /// # Errors
    /// The range is not inside the landing.
    #[inline]
    pub fn find(
        &self,
        from: PeerId,
        landing: LandingId,
        key: Key,
        offset: u64,
        len: u64,
    ) -> Result<Option<Segments>, PastEnd> {
        let Some(found) = self.open.get(&landing).filter(|l| l.key == key && l.from == from) else {
            return Ok(None);
        };
        match offset.checked_add(len) {
            Some(end) if end <= found.into.len() => Ok(Some(found.into.slice(offset, len))),
            _ => Err(PastEnd),
        }
    }
}
