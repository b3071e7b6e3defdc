//! Packets, and the identifiers that the layers share.

use crate::memory::Segments;
use alloc::vec::Vec;
use core::num::NonZeroU8;

/// A peer: the other process, over all rails; its rank in the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u32);

/// A rail: one interface in use; its index in the list of rails of this process (below
/// [`nmad_wire::MAX_RAILS`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RailId(pub u8);

impl RailId {
    /// Returns the index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A strategy, by its place in the list of known ones ([`crate::Registry::place`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrategyId(NonZeroU8);

impl StrategyId {
    /// Returns the identifier of the strategy at this place; `None`: the place is too large.
    pub fn at(place: usize) -> Option<StrategyId> {
        u8::try_from(place + 1).ok().and_then(NonZeroU8::new).map(StrategyId)
    }

    /// Returns its place.
    pub fn place(self) -> usize {
        usize::from(self.0.get()) - 1
    }
}

/// Identifier of a receive region, chosen by the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u64);

/// Key of a receive region on the receiver's side of a rail; only the drivers of that rail interpret it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub u64);

impl Key {
    /// The key of a pushed chunk: its sender knows no receive region yet and uses its own request instead.
    /// No driver returns this key.
    pub const PUSH: Key = Key(u64::MAX);
}

/// Identifier of a request, valid until its completion was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u64);

impl RequestId {
    /// No request has this identifier.
    pub const NONE: RequestId = RequestId(0);
}

/// Header and frames of one packet; large data may be sent in place.
#[derive(Debug, Default)]
pub struct Packet {
    /// Header and frames; data of `in_place` is missing here.
    pub bytes: Vec<u8>,
    /// Data to be inserted before `bytes[at]`, in ascending order of `at`.
    pub in_place: Vec<(usize, Segments)>,
}

impl Packet {
    /// Returns the length on the wire, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.in_place.iter().map(|(_, data)| data.len() as usize).sum::<usize>()
    }

    /// Whether it is empty, even without a header.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Copies the data sent in place into the packet, so that its memory is free.
    #[cold]
    pub(crate) fn gather(&mut self) {
        let len = self.len();
        let in_place = core::mem::take(&mut self.in_place);
        match &in_place[..] {
            // Data after all other bytes is appended to the packet's own buffer, which is reused.
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
