//! What can go wrong in a benchmark.
use std::io;

use newmadeleine::SessionError;
use thiserror::Error;

/// Why a benchmark could not be run to its end.
#[derive(Debug, Error)]
pub enum BenchError {
    /// NewMadeleine failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A plain socket failed.
    #[error("plain sockets: {what}: {source}")]
    Socket {
        /// The call that failed.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The benchmark cannot be run in this job.
    #[error("{0}")]
    Job(String),
}

impl BenchError {
    /// Names what was tried when the system refused.
    pub(super) fn socket(what: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let what = what.into();
        move |source| BenchError::Socket { what, source }
    }
}
