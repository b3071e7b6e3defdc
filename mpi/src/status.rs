//! The status of a message at its end.

use crate::constant::{ANY_SOURCE, ANY_TAG, PROC_NULL};
use crate::error::Class;

/// A status, as the core knows it; fronts keep it in their own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// How the request ended: only set by calls that wait for several.
    pub error: Class,
    /// Bytes of the message that arrived.
    pub count_bytes: i64,
    /// The request was cancelled.
    pub cancelled: bool,
}

impl Status {
    /// Of requests that are no messages, of sends, and of null requests.
    pub const EMPTY: Status =
        Status { source: ANY_SOURCE, tag: ANY_TAG, error: Class::SUCCESS, count_bytes: 0, cancelled: false };

    /// Of a receive from no process.
    pub const NO_PROC: Status = Status { source: PROC_NULL, ..Status::EMPTY };
}
