//! Messages that are sent or received again and again. Their arguments are looked up once, and what they name
//! is kept: handles may be freed, and stand for something else, before the message is started.

use super::buffered;
use super::send::Arguments;
use crate::comm::{self, Communicator};
use crate::error::Result;
use crate::handle::{Comm, Request};
use crate::message::segments;
use crate::request::{Flight, Persistent, Sender, State};
use crate::status::Status;
use crate::world::world;
use newmadeleine::{Hints, Segments};
use std::sync::Arc;

/// What arguments name.
struct Kept {
    comm: Arc<Communicator>,
    /// Whose error handler is asked.
    handle: Comm,
    data: Segments,
}

impl Kept {
    fn new((buffer, count, datatype, _, _, handle): Arguments) -> Result<Kept> {
        Ok(Kept { comm: comm::share(handle)?, data: segments(buffer, count, datatype)?, handle })
    }
}

fn request(make: impl FnMut() -> Result<State> + Send + 'static) -> Request {
    State::Persistent(Persistent::new(make)).into_request()
}

/// Sends.
///
/// # Errors
/// An argument is wrong.
pub(crate) fn send(arguments: Arguments, hints: Hints) -> Result<Request> {
    let kept = Kept::new(arguments)?;
    let target = kept.comm.target(arguments.3, arguments.4)?;
    Ok(request(move || {
        let (Kept { handle, data, .. }, node) = (&kept, world()?.node());
        let id = target.and_then(|target| node.begin_send(target, data, hints));
        Ok(id.map_or(State::ended(Status::EMPTY), |id| State::Flight(Flight::send(id, *handle))))
    }))
}

/// Sends from the attached buffer.
///
/// # Errors
/// An argument is wrong.
pub(crate) fn bsend(arguments: Arguments) -> Result<Request> {
    let kept = Kept::new(arguments)?;
    let target = kept.comm.target(arguments.3, arguments.4)?;
    Ok(request(move || {
        target.map_or(Ok(()), |target| buffered::put(&kept.comm, target, &kept.data))?;
        Ok(State::ended(Status::EMPTY))
    }))
}

/// Receives.
///
/// # Errors
/// An argument is wrong.
pub(crate) fn recv(arguments: Arguments) -> Result<Request> {
    let (.., source, tag, _) = arguments;
    let kept = Kept::new(arguments)?;
    let origin = kept.comm.origin(source, tag)?;
    Ok(request(move || {
        let (Kept { comm, handle, data }, node) = (&kept, world()?.node());
        let Some(origin) = origin else { return Ok(State::ended(Status::NO_PROC)) };
        let id = node.submit_recv(origin, data.clone());
        Ok(State::Flight(Flight::recv(id, *handle, Sender::of(source, || Ok(comm.clone()))?)))
    }))
}
