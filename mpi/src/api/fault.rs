//! User-Level Failure Mitigation: what a program calls to go on when ranks have died. The functions have
//! the names of MPICH and Open MPI; the standard has none yet.

use crate::comm::lookup;
use crate::error::Result;
use crate::fault::calls;
use crate::handle::{Comm, Group, Request};
use crate::objects::hand_out_group;

/// `MPIX_Comm_revoke`: all calls on the communicator that communicate end with `MPIX_ERR_REVOKED`, at all
/// its processes.
///
/// # Errors
/// There is no such communicator, or the job does not survive failures.
pub fn mpix_comm_revoke(comm: Comm) -> Result<()> {
    calls::revoke(comm)
}

/// `MPIX_Comm_is_revoked`
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_is_revoked(comm: Comm) -> Result<bool> {
    Ok(lookup(comm)?.health().is_revoked())
}

/// `MPIX_Comm_shrink`: a communicator of the processes that are alive. Collective over these.
///
/// # Errors
/// As [`mpix_comm_revoke`], or no context is left.
pub fn mpix_comm_shrink(comm: Comm) -> Result<Comm> {
    calls::shrink(comm)
}

/// `MPIX_Comm_ishrink`: the new communicator is usable when the request has ended.
///
/// # Errors
/// As [`mpix_comm_shrink`].
pub fn mpix_comm_ishrink(comm: Comm) -> Result<(Comm, Request)> {
    calls::ishrink(comm)
}

/// `MPIX_Comm_agree`: `flag` becomes the bitwise AND of those of all processes that are alive, the same
/// at each.
///
/// # Errors
/// As [`mpix_comm_revoke`]; PROC_FAILED, the same at each, if a process has failed and not all others have
/// acknowledged that.
pub fn mpix_comm_agree(comm: Comm, flag: &mut i32) -> Result<()> {
    calls::agree(comm, flag)
}

/// `MPIX_Comm_iagree`: what is agreed upon is written to `flag` before the request ends; `flags` is what
/// it says now.
///
/// # Errors
/// As [`mpix_comm_agree`], with the request.
pub fn mpix_comm_iagree(comm: Comm, flags: i32, flag: *mut i32) -> Result<Request> {
    calls::iagree(comm, flags, flag)
}

/// `MPIX_Comm_failure_ack`: receives from any rank do not regard the failures that are known now.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_failure_ack(comm: Comm) -> Result<()> {
    calls::acknowledge(lookup(comm)?, None);
    Ok(())
}

/// `MPIX_Comm_failure_get_acked`: the failed processes that were acknowledged.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_failure_get_acked(comm: Comm) -> Result<Group> {
    Ok(hand_out_group(calls::failed(lookup(comm)?, true)))
}

/// `MPIX_Comm_get_failed`: the failed processes that are known here.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_get_failed(comm: Comm) -> Result<Group> {
    Ok(hand_out_group(calls::failed(lookup(comm)?, false)))
}

/// `MPIX_Comm_ack_failed`: acknowledges the first `num_to_ack` of [`mpix_comm_get_failed`]; returns how
/// many are acknowledged.
///
/// # Errors
/// There is no such communicator.
pub fn mpix_comm_ack_failed(comm: Comm, num_to_ack: i32) -> Result<i32> {
    let most = usize::try_from(num_to_ack).unwrap_or(0);
    Ok(calls::acknowledge(lookup(comm)?, Some(most)) as i32)
}
