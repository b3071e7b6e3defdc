//! Messages that are sent or received again and again. Their arguments are looked up once, and what they name
//! is kept: handles may be freed, and stand for something else, before the message is started.

use super::buffered;
use super::send::Arguments;
use crate::comm::Named;
use crate::error::Result;
use crate::handle::Request;
use crate::message;
use crate::request::{Flight, Persistent, Sender, State};
use crate::status::Status;
use crate::world::world;
use newmadeleine::{Hints, Segments};

/// What arguments name.
struct Kept {
    on: Named,
    data: Segments,
}

impl Kept {
    fn new((buffer, count, datatype, peer, _, handle): Arguments) -> Result<Kept> {
        Ok(Kept { on: Named::of(handle)?, data: message::with(peer, buffer, count, datatype)? })
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
    let target = kept.on.comm.target(arguments.3, arguments.4)?;
    Ok(request(move || {
        let (Kept { on, data }, node) = (&kept, world()?.node());
        let hints = on.comm.hints(hints);
        let id = target.and_then(|target| node.begin_send(&target, data, hints));
        Ok(id.map_or(State::ended(Status::SENT), |id| State::Flight(Flight::send(id, on.handle))))
    }))
}

/// Sends from the attached buffer.
///
/// # Errors
/// An argument is wrong.
pub(crate) fn bsend(arguments: Arguments) -> Result<Request> {
    let kept = Kept::new(arguments)?;
    let target = kept.on.comm.target(arguments.3, arguments.4)?;
    Ok(request(move || {
        target.map_or(Ok(()), |target| buffered::put(&kept.on.comm, target, &kept.data))?;
        Ok(State::ended(Status::SENT))
    }))
}

/// Receives.
///
/// # Errors
/// An argument is wrong.
pub(crate) fn recv(arguments: Arguments) -> Result<Request> {
    let (.., source, tag, _) = arguments;
    let kept = Kept::new(arguments)?;
    let origin = kept.on.comm.origin(source, tag)?;
    Ok(request(move || {
        let (Kept { on, data }, node) = (&kept, world()?.node());
        let Some(origin) = origin else { return Ok(State::ended(Status::NO_PROC)) };
        let id = node.submit_recv(origin, data.clone());
        Ok(State::of_recv(Flight::recv(id, on.handle, Sender::of(source, || Ok(on.comm.clone()))?)))
    }))
}
