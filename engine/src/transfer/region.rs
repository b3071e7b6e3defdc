//! A receive region: the memory for the chunks of one large message, and the record of the bytes that have
//! arrived.

use super::ranges::Ranges;
use crate::collect::request::Envelope;
use crate::memory::{Buffer, Segments};
use crate::packet::{Key, PeerId, RailId, RequestId};
use nmad_wire::Keys;

/// The contents of the sender's Rts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Announced {
    pub(crate) envelope: Envelope,
    /// Bytes that come to the region: the message without the blocks that came with the Rts.
    pub(crate) len: u64,
    /// The sender's request.
    pub(crate) request: u64,
    /// Whether the sender waits for a Fin.
    pub(crate) fin: bool,
    /// Whether the sender already has the keys, from an Rtr.
    pub(crate) knows_keys: bool,
    /// See [`nmad_wire::Cts::prompt`].
    pub(crate) prompt: bool,
}

/// Matching state of the message of a receive region.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stage {
    /// The region is open and no message is matched to it: a receive has invited one by Rtr, or the region
    /// is a buffer of the engine for a pushed message that no receive was posted for.
    Unmatched,
    /// A receive has matched this message.
    Matched(Announced),
}

#[derive(Debug)]
pub(crate) struct Region {
    /// The receive request; [`RequestId::NONE`] until the arriving message matches one.
    pub(crate) request: RequestId,
    pub(crate) from: PeerId,
    pub(crate) into: Segments,
    pub(crate) keys: Keys,
    /// Rails that were asked to open the region and have not answered, as bits.
    awaited: u16,
    /// Rails that have the region open, as bits.
    open: u16,
    pub(crate) stage: Stage,
    /// The engine's buffer for a pushed message that no receive was posted for.
    pub(crate) buffer: Option<Buffer>,
    /// Bytes of that message that came with its request to send.
    pub(crate) blocks_len: u64,
    ranges: Ranges,
}

impl Region {
    pub(crate) fn new(
        request: RequestId,
        from: PeerId,
        into: Segments,
        rails: impl Iterator<Item = RailId>,
    ) -> Self {
        let awaited = rails.fold(0, |bits, rail| bits | 1 << rail.0);
        let keys = Keys::default();
        let ranges = Ranges::default();
        let stage = Stage::Unmatched;
        Region { request, from, into, keys, awaited, open: 0, stage, buffer: None, blocks_len: 0, ranges }
    }

    /// Creates a receive region with a buffer of the engine for a message that `from` pushes.
    pub(crate) fn stored(from: PeerId, buffer: Buffer, rails: impl Iterator<Item = RailId>) -> Self {
        let region = Region::new(RequestId::NONE, from, buffer.segments(), rails);
        Region { buffer: Some(buffer), ..region }
    }

    /// Whether the rail was asked to open the region and has not answered.
    pub(crate) fn awaits(&self, rail: RailId) -> bool {
        self.awaited & 1 << rail.0 != 0
    }

    /// Records that a rail has opened the region; true if it was the last one awaited.
    pub(crate) fn opened(&mut self, rail: RailId, key: Key) -> bool {
        self.keys.push(rail.0, key.0);
        self.open |= 1 << rail.0;
        self.answered(rail)
    }

    /// Stops waiting for a rail; true if it was the last one awaited.
    pub(crate) fn answered(&mut self, rail: RailId) -> bool {
        let was = self.awaited;
        self.awaited &= !(1 << rail.0);
        was != 0 && self.awaited == 0
    }

    /// Whether all rails have answered.
    pub(crate) fn is_ready(&self) -> bool {
        self.awaited == 0
    }

    /// Returns the rails that must close the region: those that have it open or are opening it.
    pub(crate) fn rails(&self) -> impl Iterator<Item = RailId> + use<> {
        let bits = self.open | self.awaited;
        (0..16).filter(move |rail| bits & 1 << rail != 0).map(RailId)
    }

    /// Returns the bytes that the message puts into the region, at most its length; `None` until a message
    /// is matched.
    pub(crate) fn expected(&self) -> Option<u64> {
        match self.stage {
            Stage::Matched(announced) => Some(announced.len.min(self.into.len())),
            Stage::Unmatched => None,
        }
    }

    /// Records a chunk that has arrived. False if it is outside the receive region.
    pub(crate) fn landed(&mut self, offset: u64, len: u64) -> bool {
        match offset.checked_add(len) {
            Some(end) if end <= self.into.len() => {
                self.ranges.add(offset, end);
                true
            }
            _ => false,
        }
    }

    /// Whether all bytes of the region have arrived.
    pub(crate) fn is_full(&self) -> bool {
        self.ranges.cover(self.into.len())
    }

    /// Whether the first `len` bytes have arrived.
    pub(crate) fn covers(&self, len: u64) -> bool {
        self.ranges.cover(len)
    }

    /// Whether a message is matched and all its bytes have arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.expected().is_some_and(|len| self.ranges.cover(len))
    }
}
