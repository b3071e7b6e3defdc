//! What a schedule needs from below: messages between the parties, and how they ended.

use nmad_engine::Segments;
use nmad_engine::{Error, RequestId};

/// Messages of one communicator's collectives.
///
/// A party is a rank of the local group, or, behind these, a rank of the remote group of an
/// intercommunicator: local size + rank. Messages of one tag between two parties arrive in order.
pub trait Transport {
    /// Submits a message. Its memory is in use until it has ended; none: it has already.
    fn send(&mut self, to: u32, tag: u64, data: Segments) -> Option<RequestId>;

    /// Posts a receive of one message with this tag.
    fn recv(&mut self, from: u32, tag: u64, into: Segments) -> RequestId;

    /// How a request ended, if it has: the bytes of the message. Told once.
    fn take(&mut self, request: RequestId) -> Option<Result<u64, Error>>;

    /// Returns the error of MPI for a failed message, with the reason that the rails give.
    fn explain(&mut self, error: Error) -> crate::error::Error;
}
