//! Incremental messages as in Madeleine (P1 section 3.4): begin, pack piece by piece, end.
//!
//! A message is a chain of pieces. The first piece matches like any message, by context and tag; each
//! further piece carries the first one's sequence number in its flow, so pieces of different messages never
//! mix and may travel on different rails in any order. The receiver unpacks the same pieces: it can wait
//! for the first (a service number, for example) before it chooses buffers for the others.

use super::request::{Context, Error, Hints, Source, Tag, TagMatch};
use crate::packet::{PeerId, RequestId};
use alloc::vec::Vec;

/// Largest number of pieces of one message.
pub const PIECES_MAX: u32 = u32::MAX;

/// A message that is being built; made by [`Packing::new`].
#[derive(Debug)]
pub struct Packing {
    pub(crate) to: PeerId,
    pub(crate) context: Context,
    pub(crate) tag: Tag,
    /// Sequence number of the first piece in its flow, once it is packed.
    pub(crate) first: Option<u32>,
    pub(crate) next_piece: u32,
}

/// A message that is being taken apart; made by [`Unpacking::new`].
#[derive(Debug)]
pub struct Unpacking {
    pub(crate) from: Source,
    pub(crate) context: Context,
    pub(crate) tag: TagMatch,
    pub(crate) message: u64,
    pub(crate) next_piece: u32,
}

/// The engine's side of an [`Unpacking`]: pieces that wait until the first one is matched.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    /// Sender and sequence number of the first piece, once known.
    pub(crate) origin: Option<(PeerId, u32)>,
    pub(crate) waiting: Vec<(RequestId, u32)>,
    /// Why the first piece failed: all others fail with it.
    pub(crate) failed: Option<Error>,
    /// The application has ended the message; the state is dropped when no piece waits.
    pub(crate) ended: bool,
}

/// Returns the context of all pieces but the first of messages of `context`.
pub(crate) fn piece_context(context: Context) -> Context {
    Context(context.0 | Context::LIMIT)
}

/// Returns the tag of piece `piece` of the message whose first piece has sequence number `first` in its
/// flow.
pub(crate) fn piece_tag(first: u32, piece: u32) -> Tag {
    Tag(u64::from(first) << 32 | u64::from(piece))
}

/// Returns hints for a piece: each piece has a tag of its own, so their order does not matter.
pub(crate) fn piece_hints(hints: Hints) -> Hints {
    Hints { unordered: true, ..hints }
}
