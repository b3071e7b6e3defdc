//! Probing: which message would a receive get? With a handle it is taken away from all others.

use crate::comm::{self, Communicator, Named};
use crate::error::{Class, Result};
use crate::fault;
use crate::handle::{Comm, DYNAMIC, Message, Type};
use crate::health::{any_failed, revoked};
use crate::message::segments;
use crate::request::{self, Ended, Flight, Sender, State, explain, received};
use crate::status::Status;
use crate::table::Table;
use crate::task;
use crate::world::{World, world};
use newmadeleine::RequestId;
use newmadeleine::engine::{Claim, Engine, Error, Source};
use newmadeleine::progress::Patience;
use std::ffi::c_void;
use std::sync::Arc;

/// Messages that were found by a matching probe.
pub(crate) static FOUND: Table<Found> = Table::new(DYNAMIC);

/// A message that only its handle receives.
pub(crate) struct Found {
    claim: Claim,
    comm: Named,
}

/// The communicator of a found message.
pub(crate) fn comm_of(message: Message) -> Option<Comm> {
    FOUND.get(message.0).map(|found| found.comm.handle)
}

/// The message that a receive would get: its status. None: it would come from no process.
pub(crate) fn probe(source: i32, tag: i32, comm: Comm, waits: bool) -> Result<Option<Status>> {
    let (world, comm) = (world()?, comm::lookup(comm)?);
    let Some(names) = comm.origin(source, tag)? else { return Ok(Some(Status::NO_PROC)) };
    let look = |engine: &mut Engine| engine.probe(names.0, names.1, names.2);
    let found = find(world, (comm, names.0), waits, look)?;
    Ok(found.map(|envelope| request::status(comm.sender(&envelope), &envelope)))
}

/// As [`probe`]; nobody else gets the message.
pub(crate) fn matched(source: i32, tag: i32, handle: Comm, waits: bool) -> Result<Option<(Message, Status)>> {
    let (world, named) = (world()?, Named::of(handle)?);
    let comm = &named.comm;
    let Some(names) = comm.origin(source, tag)? else {
        return Ok(Some((Message::NO_PROC, Status::NO_PROC)));
    };
    let look = |engine: &mut Engine| engine.claim(names.0, names.1, names.2);
    let Some(claim) = find(world, (comm, names.0), waits, look)? else { return Ok(None) };
    let status = request::status(comm.sender(&claim.envelope), &claim.envelope);
    let message = Message(FOUND.insert(Arc::new(Found { claim, comm: named })));
    Ok(Some((message, status)))
}

/// Looks, turns the pump, and looks again; as often as it takes, or once.
fn find<R>(
    world: &World,
    (comm, source): (&Communicator, Source),
    waits: bool,
    mut look: impl FnMut(&mut Engine) -> Option<R>,
) -> Result<Option<R>> {
    let mut patience = Patience::default();
    let mut looks = 0;
    loop {
        if let Some(found) = world.node().with(&mut look) {
            return Ok(Some(found));
        }
        if looks > 0 {
            check_source(world, comm, source)?;
            if !waits {
                return Ok(None);
            }
        }
        looks += 1;
        task::advance(world);
        if waits {
            task::pause(world, &mut patience);
        } else {
            world.node().turn();
        }
    }
}

/// A message of a process that is gone will not come, nor one on a revoked communicator.
fn check_source(world: &World, comm: &Communicator, source: Source) -> Result<()> {
    if comm.health().is_revoked() {
        return Err(revoked());
    }
    match source {
        Source::Any if any_failed() => fault::any_source_error(comm, Class::PROC_FAILED).map_or(Ok(()), Err),
        Source::Peer(peer) if world.node().with(|engine| engine.inspect().failure(peer)).is_some() => {
            Err(explain(world, Error::PeerLost(peer)))
        }
        _ => Ok(()),
    }
}

/// Submits the receive of a found message; none: it comes from no process.
fn submit(
    buffer: *const c_void,
    count: i64,
    datatype: Type,
    message: &mut Message,
) -> Result<Option<(RequestId, Named)>> {
    let world = world()?;
    let into = segments(buffer, count, datatype)?;
    if *message == Message::NO_PROC {
        *message = Message::NULL;
        return Ok(None);
    }
    let Some(found) = FOUND.remove(message.0) else {
        let text = match *message {
            Message::NULL => "the message is MPI_MESSAGE_NULL".to_string(),
            _ => format!("there is no message {}: it never was, or is received", message.0),
        };
        return Err(Class::REQUEST.error(text));
    };
    *message = Message::NULL;
    let id = world.node().submit(|engine| engine.recv_claimed(found.claim, into));
    Ok(Some((id, found.comm.clone())))
}

/// Receives a found message, and waits.
pub(crate) fn mrecv(
    buffer: *const c_void,
    count: i64,
    datatype: Type,
    message: &mut Message,
) -> Result<Ended> {
    let Some((id, named)) = submit(buffer, count, datatype, message)? else {
        return Ok(Ended::well(Status::NO_PROC));
    };
    let world = world()?;
    let outcome = world.node().wait(id);
    Ok(received(world, |envelope| named.comm.sender(envelope), outcome).on(Some(named)))
}

/// Receives a found message.
pub(crate) fn imrecv(
    buffer: *const c_void,
    count: i64,
    datatype: Type,
    message: &mut Message,
) -> Result<State> {
    Ok(match submit(buffer, count, datatype, message)? {
        Some((id, Named { comm, handle })) => State::Flight(Flight::recv(id, handle, Sender::Any(comm))),
        None => State::ended(Status::NO_PROC),
    })
}
