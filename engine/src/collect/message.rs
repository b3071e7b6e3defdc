//! Incremental messages in the manner of Madeleine (P1 section 3.4): begin, pack piece by piece, end.
//!
//! A message is a chain of pieces. The first piece matches like any message, by context and tag; each
//! further piece names the first one's place in its flow, so pieces of different messages never mix and
//! may travel on different rails in any order. The receiver unpacks the same pieces: it can wait for the
//! first (a service number, say) before it knows where the others shall go.

use super::request::{Context, Error, Hints, Source, Tag, TagMatch};
use crate::packet::{PeerId, RequestId};
use alloc::vec::Vec;

/// Most pieces of one message.
pub const PIECES_MAX: u32 = u32::MAX;

/// A message that is being built; made by [`crate::Engine::begin_packing`].
#[derive(Debug)]
pub struct Packing {
    pub(crate) to: PeerId,
    pub(crate) context: Context,
    pub(crate) tag: Tag,
    /// Place of the first piece in its flow, once it is packed.
    pub(crate) first: Option<u32>,
    pub(crate) next_piece: u32,
}

/// A message that is being taken apart; made by [`crate::Engine::begin_unpacking`].
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
    /// Sender and place in its flow, once known.
    pub(crate) origin: Option<(PeerId, u32)>,
    pub(crate) waiting: Vec<(RequestId, u32)>,
    /// Why the first piece failed: all others fail with it.
    pub(crate) failed: Option<Error>,
    /// The application has ended the message; forget it when nothing waits.
    pub(crate) ended: bool,
}

/// The context in which the further pieces of messages of `context` travel.
pub(crate) fn piece_context(context: Context) -> Context {
    Context(context.0 | Context::LIMIT)
}

/// The tag of piece `piece` of the message whose first piece has place `first` in its flow.
pub(crate) fn piece_tag(first: u32, piece: u32) -> Tag {
    Tag(u64::from(first) << 32 | u64::from(piece))
}

/// Pieces have names of their own, so their order does not matter.
pub(crate) fn piece_hints(hints: Hints) -> Hints {
    Hints { unordered: true, ..hints }
}
