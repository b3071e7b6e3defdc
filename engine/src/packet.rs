//! What a rail takes and the names by which the layers speak of it.

use crate::memory::Segments;
use alloc::vec::Vec;
use core::num::NonZeroU8;

/// The other process, over all rails: its rank in the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u32);

/// One interface in use, by its place in the list of rails of this process (below
/// [`nmad_wire::MAX_RAILS`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RailId(pub u8);

impl RailId {
    /// The place as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A strategy, by its place in the list of those that are known ([`crate::Engine::strategy`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrategyId(NonZeroU8);

impl StrategyId {
    /// The strategy at this place of the list; none: no list is that long.
    pub fn at(place: usize) -> Option<StrategyId> {
        u8::try_from(place + 1).ok().and_then(NonZeroU8::new).map(StrategyId)
    }

    /// Its place.
    pub fn place(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

/// Where the chunks of one large message go; chosen by the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u64);

/// How a rail finds a receive region on the receiver's side; means something to the drivers of that rail
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

impl Key {
    /// The key of a pushed chunk: its sender knows no receive region yet and names its own request instead.
    /// No driver gives this key out.
    pub const PUSH: Key = Key(u64::MAX);
}

/// A request, until its completion was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

impl RequestId {
    /// No request has this name.
    pub const NONE: RequestId = RequestId(0);
}

/// Header and frames of one packet, with large data left where it lies.
#[derive(Debug, Default)]
pub struct Packet {
    /// Header and frames; data of `in_place` is missing here.
    pub bytes: Vec<u8>,
    /// Data to be inserted before `bytes[at]`, in ascending order of `at`.
    pub in_place: Vec<(usize, Segments)>,
}

impl Packet {
    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.in_place.iter().map(|(_, data)| data.len() as usize).sum::<usize>()
    }

    /// Whether nothing is in it, not even a header.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Copies what lies elsewhere into the packet, so that its memory is free.
    #[cold]
    pub(crate) fn gather(&mut self) {
        let len = self.len();
        let in_place = core::mem::take(&mut self.in_place);
        match &in_place[..] {
            // Data behind all other bytes is appended to the packet's own buffer, which is used again.
            [(at, data)] if *at == self.bytes.len() => data.append_to(&mut self.bytes),
            _ => {
                let mut bytes = Vec::with_capacity(len);
                let mut from = 0;
                for (at, data) in &in_place {
                    bytes.extend_from_slice(&self.bytes[from..*at]);
                    data.append_to(&mut bytes);
                    from = *at;
                }
                bytes.extend_from_slice(&self.bytes[from..]);
                self.bytes = bytes;
            }
        }
    }

    /// Calls `part` with each contiguous part in the order of the wire.
    pub fn parts<'a>(&'a self, mut part: impl FnMut(&'a [u8])) {
        let mut from = 0;
        for (at, data) in &self.in_place {
            if *at > from {
                part(&self.bytes[from..*at]);
            }
            data.slices().for_each(&mut part);
            from = *at;
        }
        if from < self.bytes.len() {
            part(&self.bytes[from..]);
        }
    }
}
