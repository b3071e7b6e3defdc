//! Sending.

use crate::comm;
use crate::error::Result;
use crate::handle::{Comm, Request, Type};
use crate::message::segments;
use crate::request::{Flight, SLOTS, State, sent};
use crate::status::Status;
use crate::world::world;
use newmadeleine::{Hints, RequestId};
use std::ffi::c_void;

/// What a send is given: buffer, count, type, destination, tag, communicator.
pub(crate) type Arguments = (*const c_void, i64, Type, i32, i32, Comm);

/// Complete as soon as its memory may be reused.
pub(crate) const STANDARD: Hints =
    Hints { priority: 0, rail: None, synchronous: false, unordered: false, probe: None };
/// Complete not before it is matched.
pub(crate) const SYNCHRONOUS: Hints = Hints { synchronous: true, ..STANDARD };

/// Sends, and waits.
#[inline]
pub(crate) fn send((buffer, count, datatype, dest, tag, comm): Arguments, hints: Hints) -> Result<()> {
    let found = comm::lookup(comm)?;
    let data = segments(buffer, count, datatype)?;
    let world = world()?;
    let Some(target) = found.target(dest, tag)? else { return Ok(()) };
    if crate::task::any() {
        return send_beside(target, data, (hints, comm));
    }
    sent(world, world.node().send(target, &data, hints)).answer().map(drop)
}

/// Sends, and advances tasks while it waits.
#[cold]
fn send_beside(
    (to, context, tag): comm::Target,
    data: newmadeleine::Segments,
    (hints, comm): (Hints, Comm),
) -> Result<()> {
    let world = world()?;
    let id = world.node().submit(|engine| engine.send(to, context, tag, data, hints));
    crate::request::wait::await_state(world, State::Flight(Flight::send(id, comm))).answer().map(drop)
}

/// Submits a send; none: it has ended already, or goes to no process.
#[inline]
pub(crate) fn submit(
    (buffer, count, datatype, dest, tag, comm): Arguments,
    hints: Hints,
) -> Result<Option<RequestId>> {
    let comm = comm::lookup(comm)?;
    let data = segments(buffer, count, datatype)?;
    let world = world()?;
    let Some(target) = comm.target(dest, tag)? else { return Ok(None) };
    Ok(world.node().begin_send(target, &data, hints))
}

/// Submits a send: its state.
pub(crate) fn state(arguments: Arguments, hints: Hints) -> Result<State> {
    let comm = arguments.5;
    let flight = submit(arguments, hints)?.map(|id| Flight::send(id, comm));
    Ok(flight.map_or(State::ended(Status::EMPTY), State::Flight))
}

/// Submits a send: its request.
#[inline]
pub(crate) fn isend(arguments: Arguments, hints: Hints) -> Result<Request> {
    Ok(match submit(arguments, hints)? {
        None => SLOTS.sent(),
        Some(id) => State::Flight(Flight::send(id, arguments.5)).into_request(),
    })
}
