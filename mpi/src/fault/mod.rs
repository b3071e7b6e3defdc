//! Failure mitigation: the program goes on when ranks die (`mpiexec --ft`), with the calls of User-Level
//! Failure Mitigation (Bland, Bouteiller, Herault, Hursey, Bosilca, Dongarra, 2012; `MPIX_Comm_revoke`
//! and the others).
//!
//! - [`detection`] learns of deaths: from the launcher, from lost links, and from other ranks.
//! - [`state`] is what this process knows: failed processes, communicators, agreements. It ends what needs a
//!   failed process: receives in the collective context of its communicators (the engine ends those that name
//!   it). [`alert`] has waits look at that.
//! - [`agreement`] is the state machine of `MPIX_Comm_agree` and `MPIX_Comm_shrink`, [`message`] what its
//!   ranks send.
//! - [`calls`] are the functions of the program.
//!
//! Without `--ft` nothing of this runs: a death ends the job.

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

/// Takes note of a communicator whose number is known: failures of its processes concern it.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn watch(comm: &Arc<Communicator>) -> Result<()> {
    if is_on() { at_hand::run(|engine| state::lock().watch(engine, comm)) } else { Ok(()) }
}

/// A new communicator has this number: its contexts are as if they were new.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn opened(number: u32) -> Result<()> {
    if is_on() { at_hand::run(|engine| state::lock().opened(engine, number)) } else { Ok(()) }
}

/// Returns the error of a receive from any rank that may wait for a failed one: the program has not
/// acknowledged that failure with `MPIX_Comm_failure_ack`.
#[cold]
pub(crate) fn bars_wildcards(comm: &Communicator, class: Class) -> Option<Error> {
    let process = state::lock().unacknowledged(comm)?;
    let rank = comm.peers().rank_of(process)?;
    Some(class.error(format!(
        "rank {rank} of the communicator has failed, and a receive from any rank may wait for it: after \
         MPIX_Comm_failure_ack it waits for the others"
    )))
}
