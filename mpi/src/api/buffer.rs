//! Buffers for buffered sends: that of the process, and those of communicators.

use crate::comm::{Named, lookup};
use crate::error::Result;
use crate::handle::{Comm, Request};
use crate::point::Attached;
use crate::point::buffered::process;
use crate::request::State;
use crate::status::Status;
use crate::task::{self, Async};
use crate::world::world;
use std::ffi::c_void;

fn iflush(comm: Comm, buffer: &Attached) -> Result<Request> {
    let (comm, flush) = (Named::of(comm)?, buffer.iflush()?);
    let work = Async::new(async {
        flush.await?;
        Ok(Status::EMPTY)
    });
    Ok(State::Task(task::start(world()?, Box::new(work)), comm).into_request())
}

/// `MPI_Buffer_attach`; [`crate::constant::BUFFER_AUTOMATIC`] has memory as it is needed.
///
/// # Errors
/// There is one already, its size is negative, or it has one and is NULL.
pub fn buffer_attach(buffer: *mut c_void, size: i64) -> Result<()> {
    process().attach(buffer, size)
}

/// `MPI_Buffer_detach`: waits for its messages; its address and size.
///
/// # Errors
/// There is none.
pub fn buffer_detach() -> Result<(*mut c_void, i64)> {
    let (start, size) = process().detach()?;
    Ok((std::ptr::with_exposed_provenance_mut(start), size))
}

/// `MPI_Buffer_flush`: waits for its messages.
///
/// # Errors
/// There is none.
pub fn buffer_flush() -> Result<()> {
    process().flush()
}

/// `MPI_Buffer_iflush`
///
/// # Errors
/// There is none.
pub fn buffer_iflush() -> Result<Request> {
    iflush(Comm::SELF, process())
}

/// `MPI_Comm_attach_buffer`
///
/// # Errors
/// As [`buffer_attach`], or there is no such communicator.
pub fn comm_attach_buffer(comm: Comm, buffer: *mut c_void, size: i64) -> Result<()> {
    lookup(comm)?.buffer().attach(buffer, size)
}

/// `MPI_Comm_detach_buffer`: waits for its messages; its address and size.
///
/// # Errors
/// There is none, or there is no such communicator.
pub fn comm_detach_buffer(comm: Comm) -> Result<(*mut c_void, i64)> {
    let (start, size) = lookup(comm)?.buffer().detach()?;
    Ok((std::ptr::with_exposed_provenance_mut(start), size))
}

/// `MPI_Comm_flush_buffer`: waits for its messages.
///
/// # Errors
/// There is none, or there is no such communicator.
pub fn comm_flush_buffer(comm: Comm) -> Result<()> {
    lookup(comm)?.buffer().flush()
}

/// `MPI_Comm_iflush_buffer`
///
/// # Errors
/// There is none, or there is no such communicator.
pub fn comm_iflush_buffer(comm: Comm) -> Result<Request> {
    iflush(comm, lookup(comm)?.buffer())
}
