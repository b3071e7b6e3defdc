//! Errors as exceptions.

use newmadeleine::SessionError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(newmadeleine, Error, PyException, "What all errors of this module are.");
create_exception!(newmadeleine, LaunchError, Error, "The job cannot be joined, or its launcher is gone.");
create_exception!(newmadeleine, SettingError, Error, "A setting is unknown, or its value makes no sense.");
create_exception!(newmadeleine, RailError, Error, "A network cannot be used.");
create_exception!(newmadeleine, TruncatedError, Error, "The message was longer than the buffer.");
create_exception!(newmadeleine, PeerLostError, Error, "The other process is gone.");
create_exception!(newmadeleine, CancelledError, Error, "The receive was cancelled.");
create_exception!(newmadeleine, ClosedError, Error, "The session is closed.");

/// Why a request or a call failed, kept apart from Python.
#[derive(Debug, Clone)]
pub struct Failure {
    make: fn(String) -> PyErr,
    text: String,
}

impl Failure {
    /// The session was closed before.
    pub fn closed() -> Failure {
        Failure { make: ClosedError::new_err, text: "the session is closed".into() }
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Failure {
        let make: fn(String) -> PyErr = match &error {
            SessionError::Launch(_) => LaunchError::new_err,
            SessionError::Setting { .. } => SettingError::new_err,
            SessionError::Rail(_) => RailError::new_err,
            SessionError::Truncated { .. } => TruncatedError::new_err,
            SessionError::PeerLost { .. } => PeerLostError::new_err,
            SessionError::Cancelled => CancelledError::new_err,
            SessionError::NoSuchRank { .. } | SessionError::NoSuchContext(_) => PyValueError::new_err,
            SessionError::System { .. } => PyOSError::new_err,
            _ => Error::new_err,
        };
        Failure { make, text: error.to_string() }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        (failure.make)(failure.text)
    }
}

/// Adds the exceptions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("LaunchError", py.get_type::<LaunchError>())?;
    module.add("SettingError", py.get_type::<SettingError>())?;
    module.add("RailError", py.get_type::<RailError>())?;
    module.add("TruncatedError", py.get_type::<TruncatedError>())?;
    module.add("PeerLostError", py.get_type::<PeerLostError>())?;
    module.add("CancelledError", py.get_type::<CancelledError>())?;
    module.add("ClosedError", py.get_type::<ClosedError>())
}
