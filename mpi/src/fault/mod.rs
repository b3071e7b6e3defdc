//! Failure mitigation: a job started by `mpiexec --ft` continues when ranks die. The program recovers with
//! the calls of User-Level Failure Mitigation (Bland, Bouteiller, Herault, Hursey, Bosilca, Dongarra, 2012;
//! `MPIX_Comm_revoke` and others).
//!
//! - [`detection`] receives reports of deaths from the launcher, and registers the service that handles
//!   lost links and the notices of other ranks.
//! - [`state`] holds the failed processes, communicators and agreements that this process knows. It ends
//!   receives in the collective context of communicators that have a failed process. (The engine ends
//!   receives whose source is a failed process.)
//! - [`alert`] makes waiting threads check for failures.
//! - [`agreement`] is the state machine of `MPIX_Comm_agree` and `MPIX_Comm_shrink`; [`message`] encodes
//!   its messages.
//! - [`calls`] implements the `MPIX_` functions.
//!
//! Without `--ft` none of this runs, and a death ends the job.

mod agreement;
mod alert;
pub(crate) mod calls;
mod detection;
mod message;
mod set;
mod state;

pub(crate) use detection::{begin, end};

use crate::at_hand;
use crate::comm::Communicator;
use crate::error::{Class, Error, Result};
use crate::health::is_on;
use std::sync::Arc;

/// Registers a communicator that has its context, so that failures of its processes affect it.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn watch(comm: &Arc<Communicator>) -> Result<()> {
    if is_on() { at_hand::run(|engine| state::lock().watch(engine, comm)) } else { Ok(()) }
}

/// Resets the contexts of a number that a new communicator gets: a communicator that had it before may have
/// been revoked or have had failed processes.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn reset_contexts(number: u32) -> Result<()> {
    if is_on() { at_hand::run(|engine| state::lock().reset_contexts(engine, number)) } else { Ok(()) }
}

/// Returns the error of a receive from any source if a process of the communicator has failed and the
/// program has not acknowledged that with `MPIX_Comm_failure_ack`.
#[cold]
pub(crate) fn any_source_error(comm: &Communicator, class: Class) -> Option<Error> {
    let process = state::lock().unacknowledged(comm)?;
    let rank = comm.peers().rank_of(process)?;
    Some(class.error(format!(
        "rank {rank} of the communicator has failed, so a receive from MPI_ANY_SOURCE may never end: call \
         MPIX_Comm_failure_ack to wait for the other ranks"
    )))
}
