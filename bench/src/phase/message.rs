//! The state of a message while its phase is predicted.

use super::pattern::Carried;

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
    /// The request to send, or the data, is at the receiver.
    pub(super) is_there: bool,
    /// All of it is at the receiver.
    pub(super) is_whole: bool,
    /// Of its data, pieces that have not come.
    pub(super) missing: usize,
    /// Rail and length of the pieces that have come while the receiver computed.
    pub(super) unread: Vec<(usize, u64)>,
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
    /// Whether it has ended for this rank.
    pub(super) fn has_ended(&self, rank: usize) -> bool {
        if self.from == rank { self.is_sent } else { self.is_received }
    }
}
