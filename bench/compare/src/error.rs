//! What keeps a comparison from being made at all. What keeps a part of it from being made is in the report.

use crate::interrupt;
use std::io;
use std::path::PathBuf;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A file or folder cannot be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// As in "read" or "write".
        what: &'static str,
        /// Which one.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Our own MPI cannot be measured.
    #[error("MAD-MPI cannot be measured: {0}")]
    Ours(String),
    /// It has failed at some cells; the report is there.
    #[error("MAD-MPI crashed or hung: {0} cells have no figure of it; the report says which, and why")]
    Failed(usize),
    /// Figures of an earlier run belong to something else.
    #[error("{} has figures of {what}: --fresh starts over, --out DIR keeps both", path.display())]
    Other {
        /// What differs.
        what: String,
        /// The file of figures.
        path: PathBuf,
    },
    /// A file is not what it should be.
    #[error("{}: {what}", path.display())]
    Damaged {
        /// The damage and the remedy.
        what: String,
        /// The file.
        path: PathBuf,
    },
    /// The user has ended the run.
    #[error("ended by {}: the job was ended and its files are removed", interrupt::name(*signal))]
    Interrupted {
        /// The number of the signal.
        signal: i32,
    },
    /// An argument names nothing.
    #[error("{0}")]
    Argument(String),
}

impl CompareError {
    /// For `map_err`.
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> CompareError {
        let path = path.into();
        move |source| CompareError::File { what, path, source }
    }
}
