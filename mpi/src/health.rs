//! Whether the job survives failures, how many there are, and what a communicator knows of those among its
//! processes.

use crate::error::{Class, Error, Result};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Whether the job survives deaths.
pub(crate) static IS_ON: AtomicBool = AtomicBool::new(false);
/// Number of processes that have failed.
pub(crate) static FAILED: AtomicUsize = AtomicUsize::new(0);

/// Returns whether the job survives deaths.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Returns whether a process has failed and the job goes on.
#[inline]
pub(crate) fn any_failed() -> bool {
    FAILED.load(Ordering::Relaxed) > 0
}

/// Returns the class of errors that say that a process is gone.
pub(crate) fn class_of_loss() -> Class {
    if is_on() { Class::PROC_FAILED } else { Class::PROC_ABORTED }
}

/// The communicator was revoked. The sign, so that sends check it together with the sign of the tag.
const REVOKED: i32 = i32::MIN;
/// One of its processes has failed.
const BROKEN: i32 = 1;

/// Failures among the processes of a communicator.
#[derive(Debug, Default)]
pub(crate) struct Health {
    flags: AtomicI32,
    /// Failures that the program has acknowledged: so many of those that this process has learnt of, in
    /// their order.
    pub(crate) acknowledged: AtomicUsize,
    /// Agreements that were begun.
    agreements: AtomicU64,
}

impl Health {
    /// Negative if the communicator was revoked.
    #[inline]
    pub(crate) fn sign(&self) -> i32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Returns whether collectives can take place: it was not revoked, and no process has failed.
    #[inline]
    pub(crate) fn is_well(&self) -> bool {
        self.sign() == 0
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.sign() < 0
    }

    /// Marks it revoked; returns whether it was not before.
    pub(crate) fn revoke(&self) -> bool {
        self.flags.fetch_or(REVOKED, Ordering::Relaxed) >= 0
    }

    pub(crate) fn break_up(&self) {
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
                .error("a process of the communicator has failed: MPIX_Comm_shrink makes one without it"),
        })
    }

    pub(crate) fn next_agreement(&self) -> u64 {
        self.agreements.fetch_add(1, Ordering::Relaxed)
    }
}

/// The error of calls on a revoked communicator.
#[cold]
pub(crate) fn revoked() -> Error {
    Class::REVOKED.error("the communicator was revoked: MPIX_Comm_shrink makes another one of its processes")
}
