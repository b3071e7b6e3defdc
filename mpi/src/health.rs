//! Global failure state (fault tolerance on or off, number of failures) and the failure state of each
//! communicator. Calls check these before they communicate.

use crate::error::{Class, Error, Result};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Set if the job survives deaths.
pub(crate) static IS_ON: AtomicBool = AtomicBool::new(false);
/// Number of processes that have failed.
pub(crate) static FAILED: AtomicUsize = AtomicUsize::new(0);

/// Returns whether the job survives deaths.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Returns whether the job has lost a process and continues.
#[inline]
pub(crate) fn any_failed() -> bool {
    FAILED.load(Ordering::Relaxed) > 0
}

/// Returns the class of the error of a call that needs a lost process.
pub(crate) fn class_of_loss() -> Class {
    if is_on() { Class::PROC_FAILED } else { Class::PROC_ABORTED }
}

/// Flag: the communicator was revoked. It is the sign bit, so that a send checks it and the sign of the tag
/// with one test.
const REVOKED: i32 = i32::MIN;
/// Flag: a process of the communicator has failed.
const BROKEN: i32 = 1;

/// Failure state of a communicator.
#[derive(Debug, Default)]
pub(crate) struct Health {
    flags: AtomicI32,
    /// Number of failures, in the order of detection by this process, that the program has acknowledged. It
    /// counts failures of all processes, including those outside the communicator.
    pub(crate) acknowledged: AtomicUsize,
    /// Number of agreements that this process has begun.
    agreements: AtomicU64,
}

impl Health {
    /// Returns a negative number if the communicator was revoked.
    #[inline]
    pub(crate) fn sign(&self) -> i32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Returns whether collectives are possible: the communicator was not revoked, and none of its
    /// processes has failed.
    #[inline]
    pub(crate) fn is_well(&self) -> bool {
        self.sign() == 0
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.sign() < 0
    }

    /// Marks the communicator as revoked; returns whether this is its first revocation.
    pub(crate) fn revoke(&self) -> bool {
        self.flags.fetch_or(REVOKED, Ordering::Relaxed) >= 0
    }

    /// Records that a process of the communicator has failed.
    pub(crate) fn mark_broken(&self) {
        self.flags.fetch_or(BROKEN, Ordering::Relaxed);
    }

    /// Checks whether a collective operation can begin.
    ///
    /// # Errors
    /// The communicator was revoked, or one of its processes has failed.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_well() { Ok(()) } else { self.refuse() }
    }

    #[cold]
    fn refuse(&self) -> Result<()> {
        Err(match self.is_revoked() {
            true => revoked(),
            false => Class::PROC_FAILED
                .error("a process of the communicator has failed: MPIX_Comm_shrink creates one without it"),
        })
    }

    pub(crate) fn next_agreement(&self) -> u64 {
        self.agreements.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns the error of calls on a revoked communicator.
#[cold]
pub(crate) fn revoked() -> Error {
    Class::REVOKED
        .error("the communicator was revoked: MPIX_Comm_shrink creates a new one of its live processes")
}
