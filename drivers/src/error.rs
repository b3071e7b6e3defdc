//! The error of a rail that cannot be opened.

use std::fmt;
use std::io;

/// A rail cannot be opened: the rail's name, the failed step, and the system's error.
#[derive(Debug)]
pub struct DriverError {
    /// Name of the rail, for example `tcp/eth1`.
    pub rail: String,
    /// The step that failed, with the remedy where one is known.
    pub what: String,
    /// The system's error.
    pub cause: Option<io::Error>,
}

impl DriverError {
    /// An error of `rail` in the step `what`.
    pub fn new(rail: &str, what: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        DriverError { rail: rail.into(), what: what.into(), cause: Some(cause.into()) }
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rail {}: {}", self.rail, self.what)?;
        match &self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DriverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
