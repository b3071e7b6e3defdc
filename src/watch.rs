//! A wakeup descriptor for programs with an event loop (feature `async`).
#![allow(unsafe_code)]

use crate::error::SessionError;
use crate::session::Session;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

/// Result of [`Watch::arm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Armed {
    /// Something has happened: check the requests, then arm again.
    Busy,
    /// Sleep until the descriptor is readable, but no longer than this; then check the requests.
    Sleep(Duration),
}

/// A descriptor that becomes readable when requests should be checked: for `poll(2)`, or for the loop of a
/// runtime, such as `tokio::io::unix::AsyncFd`. It reports once after each [`Watch::arm`].
#[derive(Clone, Copy)]
pub struct Watch<'s> {
    session: &'s Session,
    descriptor: RawFd,
}

impl Session {
    /// Returns the descriptor of this session, which is always the same.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn watch(&self) -> Result<Watch<'_>, SessionError> {
        Ok(Watch { session: self, descriptor: self.node().descriptor().map_err(refused)? })
    }
}

impl Watch<'_> {
    /// Advances all messages, then arms the descriptor for one sleep. A caller that has checked all of its
    /// requests before this call, and gets [`Armed::Sleep`], misses no end of any of them.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn arm(&self) -> Result<Armed, SessionError> {
        Ok(match self.session.node().arm().map_err(refused)? {
            nmad_progress::Armed::Busy => Armed::Busy,
            nmad_progress::Armed::Sleep(bound) => Armed::Sleep(Duration::from_nanos(bound.as_ns())),
        })
    }
}

impl AsFd for Watch<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the node of the session owns it, and closes it when the session is dropped.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }
}

impl AsRawFd for Watch<'_> {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor
    }
}

fn refused(source: std::io::Error) -> SessionError {
    SessionError::System { what: "make a descriptor to wait on", source }
}
