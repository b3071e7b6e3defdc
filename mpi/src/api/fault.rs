//! User-Level Failure Mitigation: the functions with which a program recovers when ranks have died. They
//! have the names that MPICH and Open MPI use; the MPI standard does not define them yet.

use crate::comm::lookup;
use crate::error::Result;
use crate::fault::calls;
use crate::handle::{Comm, Group, Request};
use crate::objects::hand_out_group;

/// `MPIX_Comm_revoke`: makes all communication calls on the communicator, except agree and shrink, return
/// `MPIX_ERR_REVOKED`, in all its processes.
///
/// # Errors
/// There is no such communicator, or the job does not survive failures.
pub fn mpix_comm_revoke(comm: Comm) -> Result<()> {
    calls::revoke(comm)
}

/// `MPIX_Comm_is_revoked`: returns whether this process knows that the communicator was revoked.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_is_revoked(comm: Comm) -> Result<bool> {
    Ok(lookup(comm)?.health().is_revoked())
}

/// `MPIX_Comm_shrink`: creates a communicator of the live processes. Collective over these.
///
/// # Errors
/// There is no such communicator, the job does not survive failures, or no context is left.
pub fn mpix_comm_shrink(comm: Comm) -> Result<Comm> {
    calls::shrink(comm)
}

/// `MPIX_Comm_ishrink`: nonblocking [`mpix_comm_shrink`]. The new communicator is valid once the request
/// has completed.
///
/// # Errors
/// Those of [`mpix_comm_shrink`].
pub fn mpix_comm_ishrink(comm: Comm) -> Result<(Comm, Request)> {
    calls::ishrink(comm)
}

/// `MPIX_Comm_agree`: sets `flag` to the bitwise AND of the flags of all live processes. All get the same
/// result.
///
/// # Errors
/// There is no such communicator, or the job does not survive failures. PROC_FAILED, in all processes, if a
/// live process has not acknowledged a failure.
pub fn mpix_comm_agree(comm: Comm, flag: &mut i32) -> Result<()> {
    calls::agree(comm, flag)
}

/// `MPIX_Comm_iagree`: nonblocking [`mpix_comm_agree`]. `flags` is the contribution of this process; the
/// result is written to `flag` before the request completes.
///
/// # Errors
/// Those of [`mpix_comm_agree`]; PROC_FAILED is the error of the request.
pub fn mpix_comm_iagree(comm: Comm, flags: i32, flag: *mut i32) -> Result<Request> {
    calls::iagree(comm, flags, flag)
}

/// `MPIX_Comm_failure_ack`: acknowledges all failures known here. Receives from any source then ignore
/// them.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_failure_ack(comm: Comm) -> Result<()> {
    calls::acknowledge(lookup(comm)?, None);
    Ok(())
}

/// `MPIX_Comm_failure_get_acked`: returns the failed processes that were acknowledged.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_failure_get_acked(comm: Comm) -> Result<Group> {
    Ok(hand_out_group(calls::failed(lookup(comm)?, true)))
}

/// `MPIX_Comm_get_failed`: returns all failed processes known here.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_get_failed(comm: Comm) -> Result<Group> {
    Ok(hand_out_group(calls::failed(lookup(comm)?, false)))
}

/// `MPIX_Comm_ack_failed`: acknowledges the first `num_to_ack` processes of [`mpix_comm_get_failed`];
/// returns the number of acknowledged failures.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_ack_failed(comm: Comm, num_to_ack: i32) -> Result<i32> {
    let most = usize::try_from(num_to_ack).unwrap_or(0);
    Ok(calls::acknowledge(lookup(comm)?, Some(most)) as i32)
}
