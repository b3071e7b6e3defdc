//! The state of a message while its phase is predicted.

use super::pattern::Carried;
use super::rails::{Piece, Read};

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) len: u64,
    pub(super) carried: Option<Carried>,
    pub(super) asks: bool,
    /// Its sender waits until the send has ended.
    pub(super) blocks: bool,
    /// The library keeps a copy: no later wait of its sender includes this send.
    pub(super) is_kept: bool,
    /// The request to send, or the data, is at the receiver.
    pub(super) is_there: bool,
    /// All of it is at the receiver.
    pub(super) is_whole: bool,
    /// Of its data, pieces that have not come.
    pub(super) missing: usize,
    /// The pieces that have come and are not read, and how they are.
    pub(super) unread: Vec<(Piece, Read)>,
    /// When its data is in its place, as far as it has been read.
    pub(super) placed: u64,
    pub(super) is_posted: bool,
    /// The receiver has answered.
    pub(super) is_answered: bool,
    /// The sender has the answer; its body has left.
    pub(super) is_granted: bool,
    pub(super) has_left: bool,
    /// The receiver has all of it and puts it in its place.
    pub(super) is_taken: bool,
    /// The send has ended; the receive has.
    pub(super) is_sent: bool,
    pub(super) is_received: bool,
}

impl Message {
    /// Whether this rank need not wait for it.
    pub(super) fn is_over(&self, rank: usize) -> bool {
        self.has_ended(rank) || (self.from == rank && self.is_kept)
    }

    /// Whether it has ended for this rank.
    pub(super) fn has_ended(&self, rank: usize) -> bool {
        if self.from == rank { self.is_sent } else { self.is_received }
    }
}
