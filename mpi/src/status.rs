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
    /// How the request ended.
    pub error: Class,
    /// Whether the program's `MPI_ERROR` becomes `error`. Calls that end one request leave it alone, also if
    /// they fail, unless the status is empty; calls that end several set it in each status (MPI 5.0, sections
    /// 3.2.5 and 3.7.5).
    pub sets_error: bool,
    /// Bytes of the message that arrived.
    pub count_bytes: i64,
    /// The request was cancelled.
    pub cancelled: bool,
}

impl Status {
    /// Of null and inactive requests, and of those that are no messages.
    pub const EMPTY: Status = Status { sets_error: true, ..Status::SENT };

    /// Of sends.
    pub const SENT: Status = Status {
        source: ANY_SOURCE,
        tag: ANY_TAG,
        error: Class::SUCCESS,
        sets_error: false,
        count_bytes: 0,
        cancelled: false,
    };

    /// Of a receive from no process.
    pub const NO_PROC: Status = Status { source: PROC_NULL, ..Status::SENT };
}
