//! Partitioned messages.

use crate::error::{Class, Result};
use crate::handle::{Comm, Info, Request, Type};
use crate::info;
use crate::partitioned::{Incoming, Outgoing, Side};
use crate::request::{SLOTS, State, wait};
use crate::world::world;
use std::ffi::c_void;
use std::sync::Arc;

/// `MPI_Psend_init`: `partitions` times `count` elements.
///
/// # Errors
/// An argument is wrong.
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn psend_init(
    buf: *const c_void,
    partitions: i32,
    count: i64,
    datatype: Type,
    dest: i32,
    tag: i32,
    comm: Comm,
    info: Info,
) -> Result<Request> {
    info::optional(info)?;
    Ok(Outgoing::request((buf, partitions, count, datatype, dest, tag), comm)?.into_request())
}

/// `MPI_Precv_init`
///
/// # Errors
/// As [`psend_init`], or the source or the tag is not named.
#[allow(clippy::too_many_arguments)] // as many as the standard has
pub fn precv_init(
    buf: *mut c_void,
    partitions: i32,
    count: i64,
    datatype: Type,
    source: i32,
    tag: i32,
    comm: Comm,
    info: Info,
) -> Result<Request> {
    info::optional(info)?;
    let arguments = (buf.cast_const(), partitions, count, datatype, source, tag);
    Ok(Incoming::request(arguments, comm)?.into_request())
}

/// The partitioned message of a request.
fn side(request: Request) -> Result<Side> {
    let look = |state: &mut State| match state {
        State::Persistent(persistent) => persistent.side.clone(),
        _ => None,
    };
    let wrong = || Class::REQUEST.error("the request is not one of a partitioned message");
    SLOTS.with(request, look).ok_or_else(|| wait::unknown(request))?.ok_or_else(wrong)
}

fn outgoing(request: Request) -> Result<Arc<Outgoing>> {
    match side(request)? {
        Side::Out(outgoing) => Ok(outgoing),
        Side::In(_) => Err(Class::REQUEST.error("the request receives: only the sender says what is ready")),
    }
}

/// `MPI_Pready`
///
/// # Errors
/// There is no such request or partition, the request does not send or is not active, or the partition was
/// ready before.
pub fn pready(partition: i32, request: Request) -> Result<()> {
    outgoing(request)?.ready(std::iter::once(partition))
}

/// `MPI_Pready_range`: both ends are ready, too.
///
/// # Errors
/// As [`pready`], or the range ends before it begins.
pub fn pready_range(low: i32, high: i32, request: Request) -> Result<()> {
    if high < low {
        return Err(Class::ARG.error(format!("partitions {low} to {high}: the range must not end first")));
    }
    outgoing(request)?.ready(low..=high)
}

/// `MPI_Pready_list`
///
/// # Errors
/// As [`pready`].
pub fn pready_list(partitions: &[i32], request: Request) -> Result<()> {
    outgoing(request)?.ready(partitions.iter().copied())
}

/// `MPI_Parrived`: true, too, of the null request and of one that is not started (MPI 5.0, section 4.2.2).
///
/// # Errors
/// There is no such request or partition, or the request does not receive.
pub fn parrived(request: Request, partition: i32) -> Result<bool> {
    if request.is_null() {
        return Ok(true);
    }
    let Side::In(incoming) = side(request)? else {
        return Err(Class::REQUEST.error("the request sends: only what is received arrives"));
    };
    if !incoming.has_arrived(partition)? {
        wait::progress(world()?);
    }
    incoming.has_arrived(partition)
}
