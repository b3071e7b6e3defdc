//! Receiving.

use crate::comm::{self, Communicator};
use crate::error::Result;
use crate::handle::{Comm, Request, Type};
use crate::health::is_on;
use crate::message::{self, piece};
use crate::request::{Ended, Flight, SLOTS, Sender, State, received};
use crate::status::Status;
use crate::world::world;
use newmadeleine::RequestId;
use newmadeleine::engine::Envelope;
use std::ffi::c_void;

/// What a receive is given: buffer, count, type, source, tag, communicator.
pub(crate) type Arguments = (*const c_void, i64, Type, i32, i32, Comm);

/// Receives, and waits: how it ended.
#[inline]
pub(crate) fn recv(arguments: Arguments) -> Result<Ended> {
    let (buffer, count, datatype, source, tag, handle) = arguments;
    let comm = comm::lookup(handle)?;
    let into = message::with(source, buffer, count, datatype)?;
    let world = world()?;
    let Some((from, context, tag)) = comm.origin(source, tag)? else {
        return Ok(Ended::well(Status::NO_PROC));
    };
    if crate::task::any() || source < 0 && is_on() {
        return recv_beside(arguments);
    }
    let outcome = world.node().recv((from, context, tag), into);
    let sender = |envelope: &Envelope| if source >= 0 { source } else { comm.sender(envelope) };
    Ok(received(world, sender, outcome))
}

/// Receives, and advances tasks while it waits.
#[cold]
fn recv_beside(arguments: Arguments) -> Result<Ended> {
    let (.., source, _, handle) = arguments;
    let Some(request) = submit(arguments, comm::lookup(handle)?)? else {
        return Ok(Ended::well(Status::NO_PROC));
    };
    let flight = Flight::recv(request, handle, Sender::of(source, || comm::share(handle))?);
    Ok(crate::request::wait::await_state(world()?, State::of_recv(flight)))
}

/// Posts a receive; none: it comes from no process.
#[inline]
pub(crate) fn submit(arguments: Arguments, comm: &Communicator) -> Result<Option<RequestId>> {
    let (buffer, count, datatype, source, tag, _) = arguments;
    // Apart, so that what is usual goes straight to its place in the engine.
    if let Some(names) = comm.one_origin(source, tag)
        && let Some(into) = piece(buffer, count, datatype)
    {
        return Ok(Some(world()?.node().submit_recv(names, into)));
    }
    submit_any(arguments, comm)
}

#[inline(never)]
fn submit_any(arguments: Arguments, comm: &Communicator) -> Result<Option<RequestId>> {
    let (buffer, count, datatype, source, tag, _) = arguments;
    let world = world()?;
    let names = comm.origin(source, tag)?;
    let into = message::with(source, buffer, count, datatype)?;
    Ok(names.map(|names| world.node().submit_recv(names, into)))
}

/// Posts a receive.
#[inline]
pub(crate) fn irecv(arguments: Arguments) -> Result<Request> {
    let (.., source, _, handle) = arguments;
    let Some(request) = submit(arguments, comm::lookup(handle)?)? else { return Ok(SLOTS.no_proc()) };
    if source >= 0 {
        return Ok(SLOTS.insert_flight(|| Flight::recv(request, handle, Sender::Rank(source))));
    }
    let sender = Sender::of(source, || comm::share(handle))?;
    Ok(State::of_recv(Flight::recv(request, handle, sender)).into_request())
}
