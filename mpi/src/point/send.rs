//! Sending.

use crate::comm;
use crate::error::{Class, Result};
use crate::handle::{Comm, Request, Type};
use crate::message;
use crate::request::{Flight, SLOTS, State, sent};
use crate::world::{World, world};
use newmadeleine::setting::MPI_SEND_BUFFER;
use newmadeleine::{Hints, Prefer, RequestId, Segments};
use std::ffi::c_void;
use std::time::Duration;

/// What a send is given: buffer, count, type, destination, tag, communicator.
pub(crate) type Arguments = (*const c_void, i64, Type, i32, i32, Comm);

/// Complete as soon as its memory may be reused.
pub(crate) const STANDARD: Hints = Hints {
    priority: 0,
    rail: None,
    synchronous: false,
    unordered: false,
    depends: false,
    prefer: Prefer::Either,
    strategy: None,
    probe: None,
};
/// Complete not before it is matched.
pub(crate) const SYNCHRONOUS: Hints = Hints { synchronous: true, ..STANDARD };

/// A message whose arguments are right: its target, its data and its hints.
pub(crate) type Ready = (comm::Target, Segments, Hints);

/// As [`ready`], if that takes no look at the type and nothing is wrong. Most sends are of this kind; what
/// one way alone writes stays in registers.
#[inline(always)]
fn plain((buffer, count, datatype, dest, tag, comm): Arguments, hints: Hints) -> Option<Ready> {
    let comm = comm::lookup(comm).ok()?;
    let target = comm.one_target(dest, tag)?;
    Some((target, message::piece(buffer, count, datatype)?, comm.hints(hints)))
}

/// Checks all arguments of a send, and begins nothing; none: it goes to no process.
pub(crate) fn ready(
    (buffer, count, datatype, dest, tag, comm): Arguments,
    hints: Hints,
) -> Result<Option<Ready>> {
    let comm = comm::lookup(comm)?;
    let data = message::with(dest, buffer, count, datatype)?;
    Ok(comm.target(dest, tag)?.map(|target| (target, data, comm.hints(hints))))
}

/// Sends, and waits.
#[inline]
pub(crate) fn send(arguments: Arguments, hints: Hints) -> Result<()> {
    match plain(arguments, hints) {
        Some(ready) => complete(world()?, ready, arguments.5),
        None => send_otherwise(arguments, hints),
    }
}

#[inline(never)]
fn send_otherwise(arguments: Arguments, hints: Hints) -> Result<()> {
    let Some(ready) = ready(arguments, hints)? else { return Ok(()) };
    complete(world()?, ready, arguments.5)
}

/// Sends what is ready, and waits.
#[inline(always)]
pub(crate) fn complete(world: &World, (target, data, hints): Ready, comm: Comm) -> Result<()> {
    if crate::task::any() {
        return send_beside(target, data, (hints, comm));
    }
    sent(world, world.node().send(&target, &data, hints)).answer().map(drop)
}

/// Lets blocking sends end before their receivers answer, as far as `NMAD_MPI_SEND_BUFFER` says.
///
/// # Errors
/// NMAD_MPI_SEND_BUFFER has an invalid value.
pub(crate) fn allow_early(world: &World) -> Result<()> {
    let refused = |why: String| Class::ARG.error(why);
    let value = MPI_SEND_BUFFER.text().map_err(refused)?;
    let bytes = MPI_SEND_BUFFER.size(value.as_deref().unwrap_or(MPI_SEND_BUFFER.default)).map_err(refused)?;
    world.node().with(|engine| engine.setup().limit_early(bytes));
    Ok(())
}

/// Waits for the messages whose sends have ended early.
pub(crate) fn wait_for_early(world: &World) {
    while !world.node().wait_for(Duration::from_secs(60), |engine| engine.inspect().early_bytes() == 0) {}
}

/// Sends, and advances tasks while it waits.
#[cold]
fn send_beside((to, context, tag): comm::Target, data: Segments, (hints, comm): (Hints, Comm)) -> Result<()> {
    let world = world()?;
    let id = world.node().submit(|engine| engine.send(to, context, tag, data, hints));
    crate::request::wait::await_state(world, State::Flight(Flight::send(id, comm))).answer().map(drop)
}

/// Submits a send; none: it has ended already, or goes to no process.
#[inline]
fn submit(arguments: Arguments, hints: Hints) -> Result<Option<RequestId>> {
    match plain(arguments, hints) {
        Some(ready) => Ok(begin(world()?, &ready)),
        None => submit_otherwise(arguments, hints),
    }
}

#[inline(never)]
fn submit_otherwise(arguments: Arguments, hints: Hints) -> Result<Option<RequestId>> {
    let Some(ready) = ready(arguments, hints)? else { return Ok(None) };
    Ok(begin(world()?, &ready))
}

/// Submits what is ready; none: it has ended already.
#[inline(always)]
pub(crate) fn begin(world: &World, (target, data, hints): &Ready) -> Option<RequestId> {
    world.node().begin_send(target, data, *hints)
}

/// Submits a send: its request.
#[inline]
pub(crate) fn isend(arguments: Arguments, hints: Hints) -> Result<Request> {
    Ok(match submit(arguments, hints)? {
        None => SLOTS.sent(),
        Some(id) => State::Flight(Flight::send(id, arguments.5)).into_request(),
    })
}
