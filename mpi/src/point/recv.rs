//! Receiving.

use crate::comm::{self, Communicator};
use crate::error::Result;
use crate::handle::{Comm, Request, Type};
use crate::message::segments;
use crate::request::{Ended, Flight, SLOTS, State, received};
use crate::status::Status;
use crate::world::world;
use newmadeleine::RequestId;
use std::ffi::c_void;

/// What a receive is given: buffer, count, type, source, tag, communicator.
pub(crate) type Arguments = (*const c_void, i64, Type, i32, i32, Comm);

/// Receives, and waits: how it ended.
#[inline]
pub(crate) fn recv(arguments: Arguments) -> Result<Ended> {
    let (buffer, count, datatype, source, tag, handle) = arguments;
    let comm = comm::lookup(handle)?;
    let into = segments(buffer, count, datatype)?;
    let world = world()?;
    let Some((from, context, tag)) = comm.origin(source, tag)? else {
        return Ok(Ended::well(Status::NO_PROC));
    };
    if crate::task::any() {
        return recv_beside(arguments);
    }
    let outcome = world.node().recv((from, context, tag), into);
    Ok(received(world, comm, outcome))
}

/// Receives, and advances tasks while it waits.
#[cold]
fn recv_beside(arguments: Arguments) -> Result<Ended> {
    Ok(crate::request::wait::await_state(world()?, post(arguments)?))
}

/// Posts a receive; none: it comes from no process.
#[inline]
pub(crate) fn submit(arguments: Arguments, comm: &Communicator) -> Result<Option<RequestId>> {
    let (buffer, count, datatype, source, tag, _) = arguments;
    let into = segments(buffer, count, datatype)?;
    let world = world()?;
    let Some((from, context, tag)) = comm.origin(source, tag)? else { return Ok(None) };
    Ok(Some(world.node().submit(|engine| engine.recv(from, context, tag, into))))
}

/// Posts a receive: its state.
#[inline]
pub(crate) fn post(arguments: Arguments) -> Result<State> {
    let comm = comm::share(arguments.5)?;
    Ok(match submit(arguments, &comm)? {
        Some(id) => State::Flight(Flight::recv(id, comm)),
        None => State::ended(Status::NO_PROC),
    })
}

/// Posts a receive.
#[inline]
pub(crate) fn irecv(arguments: Arguments) -> Result<Request> {
    let comm = comm::share(arguments.5)?;
    Ok(match submit(arguments, &comm)? {
        Some(id) => State::Flight(Flight::recv(id, comm)).into_request(),
        None => SLOTS.no_proc(),
    })
}
