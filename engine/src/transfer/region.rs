//! A receive region: where the chunks of one large message go, and what of it is there.

use super::ranges::Ranges;
use crate::collect::request::Envelope;
use crate::memory::{Buffer, Segments};
use crate::packet::{Key, PeerId, RailId, RequestId};
use nmad_wire::Keys;

/// What the sender's Rts told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Announced {
    pub(crate) envelope: Envelope,
    /// The sender's request.
    pub(crate) request: u64,
    /// Whether it waits for a Fin.
    pub(crate) fin: bool,
    /// Whether the sender already has the keys, from an Rtr.
    pub(crate) knows_keys: bool,
}

/// How far the receiver is with the message of a receive region.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stage {
    /// The region is open and no message is known for it: a receive has invited it, or it is memory of our
    /// own for which no receive was posted yet.
    Unmatched,
    /// A receive has matched this message.
    Matched(Announced),
}

#[derive(Debug)]
pub(crate) struct Region {
    /// The receive; [`RequestId::NONE`] while what lands has found none.
    pub(crate) request: RequestId,
    pub(crate) from: PeerId,
    pub(crate) into: Segments,
    pub(crate) keys: Keys,
    /// Rails that have been asked to open it and have not answered, as bits.
    awaited: u16,
    /// Rails that have it open, as bits.
    open: u16,
    pub(crate) stage: Stage,
    /// Memory of our own, for what was pushed and nobody had asked for.
    pub(crate) buffer: Option<Buffer>,
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
        Region { request, from, into, keys, awaited, open: 0, stage: Stage::Unmatched, buffer: None, ranges }
    }

    /// A receive region of our own for what `from` pushes.
    pub(crate) fn stored(from: PeerId, buffer: Buffer, rails: impl Iterator<Item = RailId>) -> Self {
        let region = Region::new(RequestId::NONE, from, buffer.segments(), rails);
        Region { buffer: Some(buffer), ..region }
    }

    /// Whether the rail was asked to open it and has not answered.
    pub(crate) fn awaits(&self, rail: RailId) -> bool {
        self.awaited & 1 << rail.0 != 0
    }

    /// A rail has opened it; true when it was the last one.
    pub(crate) fn opened(&mut self, rail: RailId, key: Key) -> bool {
        self.keys.push(rail.0, key.0);
        self.open |= 1 << rail.0;
        self.answered(rail)
    }

    /// A rail will not answer any more; true when it was the last one awaited.
    pub(crate) fn answered(&mut self, rail: RailId) -> bool {
        let was = self.awaited;
        self.awaited &= !(1 << rail.0);
        was != 0 && self.awaited == 0
    }

    /// Whether all rails have answered.
    pub(crate) fn is_ready(&self) -> bool {
        self.awaited == 0
    }

    /// Rails to tell when it closes: those that have it open or are about to.
    pub(crate) fn rails(&self) -> impl Iterator<Item = RailId> + use<> {
        let bits = self.open | self.awaited;
        (0..16).filter(move |rail| bits & 1 << rail != 0).map(RailId)
    }

    /// Bytes that the message will bring, once it is known: no more than fit.
    pub(crate) fn expected(&self) -> Option<u64> {
        match self.stage {
            Stage::Matched(announced) => Some(announced.envelope.len.min(self.into.len())),
            Stage::Unmatched => None,
        }
    }

    /// A chunk lies there. False if it is outside of the receive region.
    pub(crate) fn landed(&mut self, offset: u64, len: u64) -> bool {
        match offset.checked_add(len) {
            Some(end) if end <= self.into.len() => {
                self.ranges.add(offset, end);
                true
            }
            _ => false,
        }
    }

    /// Whether all of its memory is filled.
    pub(crate) fn is_full(&self) -> bool {
        self.ranges.cover(self.into.len())
    }

    /// Whether the first `len` bytes are there.
    pub(crate) fn covers(&self, len: u64) -> bool {
        self.ranges.cover(len)
    }

    /// Whether the message is announced and all of it is there.
    pub(crate) fn is_complete(&self) -> bool {
        self.expected().is_some_and(|len| self.ranges.cover(len))
    }
}
