//! Errors of a session, with cause and remedy.

use nmad_launch::{Bootstrap, LaunchError, refuse};
use thiserror::Error;

/// Why a call failed.
#[derive(Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The job cannot be joined.
    #[error(transparent)]
    Launch(#[from] nmad_launch::LaunchError),
    /// A rail cannot be opened.
    #[error("{0}")]
    Rail(String),
    /// A setting is wrong.
    #[error("{setting}: {why}")]
    Setting {
        /// Environment variable, or key of the configuration file.
        setting: String,
        /// Cause and remedy.
        why: String,
    },
    /// The message was longer than the buffer, which has its beginning; no other message is affected.
    #[error(
        "message of {len} B from rank {from} (tag {tag:#x}) does not fit into the buffer of {capacity} B; \
         the rest of it is lost"
    )]
    Truncated {
        /// Sender.
        from: u32,
        /// Tag.
        tag: u64,
        /// Bytes of the message.
        len: u64,
        /// Bytes of the buffer.
        capacity: u64,
    },
    /// The other process is gone.
    #[error("rank {rank} is gone: {why}")]
    PeerLost {
        /// The lost rank.
        rank: u32,
        /// The reason given by the rail or the protocol.
        why: String,
    },
    /// The receive was cancelled.
    #[error("the receive was cancelled before a message came")]
    Cancelled,
    /// No such rank.
    #[error("there is no rank {rank}: the job has {size} (0 to {})", size - 1)]
    NoSuchRank {
        /// The rank that the caller named.
        rank: u32,
        /// Number of ranks of the job.
        size: u32,
    },
    /// A context outside of the application's range.
    #[error("context {0} is out of range (below 2147483648)")]
    NoSuchContext(u32),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// The call that failed.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

impl SessionError {
    /// Ends the job of this process, which has not joined it yet, if a setting is wrong ([`refuse`]).
    #[doc(hidden)]
    pub fn end_job(&self) {
        if matches!(self, SessionError::Setting { .. } | SessionError::Launch(LaunchError::Job(_))) {
            refuse(1, &self.to_string());
        }
    }

    /// Ends the job of this process if it joined it, and a rail or a setting keeps it from meeting the other
    /// ranks, which would wait for it in vain: it cannot join a second time.
    pub(crate) fn end_joined(&self, job: &mut dyn Bootstrap) {
        if job.size() > 1 && matches!(self, SessionError::Setting { .. } | SessionError::Rail(_)) {
            job.abort(1, &self.to_string());
        }
    }
}

/// Prints the message for the user, so that a `main` that returns the error explains it.
impl std::fmt::Debug for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}
