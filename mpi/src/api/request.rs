//! Completion of requests.
//!
//! Statuses are written where the caller wants them (`None`: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE), with an
//! error too. Requests that end become null, but for persistent ones. Where several end, errors are in the
//! statuses and the answer is [`Class::IN_STATUS`] with the words of the first. Indices are
//! [`UNDEFINED`] where there is nothing to wait for.

use crate::constant::UNDEFINED;
use crate::error::{Class, Result};
use crate::handle::Request;
pub use crate::request::general::Callbacks;
use crate::request::general::General;
use crate::request::list::{self, Found};
use crate::request::wait::tell;
use crate::request::{Ended, SLOTS, State, wait};
use crate::status::Status;
use crate::task;
use crate::world::world;
use std::sync::Arc;

/// `MPI_Wait`
///
/// # Errors
/// There is no such request, or how it failed.
#[inline]
pub fn wait(request: &mut Request, status: Option<&mut Status>) -> Result<()> {
    wait::wait_into(world()?, request, status)
}

/// `MPI_Test`: whether the request has ended.
///
/// # Errors
/// There is no such request, or how it failed.
#[inline]
pub fn test(request: &mut Request, status: Option<&mut Status>) -> Result<bool> {
    let Some(ended) = wait::test(world()?, request)? else { return Ok(false) };
    tell(ended, status).map(|()| true)
}

/// `MPI_Waitall`
///
/// # Errors
/// One of the requests does not exist, or has failed.
pub fn waitall(requests: &mut [Request], statuses: Option<&mut [Status]>) -> Result<()> {
    list::wait_all(world()?, requests, statuses)
}

/// `MPI_Testall`: whether all have ended; none is touched if not.
///
/// # Errors
/// As [`waitall`].
pub fn testall(requests: &mut [Request], statuses: Option<&mut [Status]>) -> Result<bool> {
    list::test_all(world()?, requests, statuses)
}

/// `MPI_Waitany`
///
/// # Errors
/// One of the requests does not exist, or the one at `index` has failed.
pub fn waitany(requests: &mut [Request], index: &mut i32, status: Option<&mut Status>) -> Result<()> {
    *index = UNDEFINED;
    match list::wait_any(world()?, requests)? {
        None => tell(Ended::well(Status::EMPTY), status),
        Some((place, ended)) => {
            *index = place as i32;
            tell(ended, status)
        }
    }
}

/// `MPI_Testany`: whether one has ended, or none can.
///
/// # Errors
/// As [`waitany`].
pub fn testany(requests: &mut [Request], index: &mut i32, status: Option<&mut Status>) -> Result<bool> {
    *index = UNDEFINED;
    match list::find_now(world()?, requests)? {
        Found::Pending => return Ok(false),
        Found::Nothing => tell(Ended::well(Status::EMPTY), status)?,
        Found::At(place) => {
            *index = place as i32;
            tell(wait::consume(&mut requests[place])?, status)?;
        }
    }
    Ok(true)
}

/// `MPI_Waitsome`; lists have the length of `requests`.
///
/// # Errors
/// One of the requests does not exist, or one of those at `indices` has failed.
pub fn waitsome(
    requests: &mut [Request],
    outcount: &mut i32,
    indices: &mut [i32],
    statuses: Option<&mut [Status]>,
) -> Result<()> {
    let world = world()?;
    let mut patience = Default::default();
    loop {
        crate::task::advance(world);
        match list::find(world, requests)? {
            Found::Nothing => {
                *outcount = UNDEFINED;
                return Ok(());
            }
            Found::At(_) => return list::take_some(world, requests, (outcount, indices), statuses),
            Found::Pending => task::pause(world, &mut patience),
        }
    }
}

/// `MPI_Testsome`; lists have the length of `requests`.
///
/// # Errors
/// As [`waitsome`].
pub fn testsome(
    requests: &mut [Request],
    outcount: &mut i32,
    indices: &mut [i32],
    statuses: Option<&mut [Status]>,
) -> Result<()> {
    let world = world()?;
    *outcount = 0;
    match list::find_now(world, requests)? {
        Found::Nothing => {
            *outcount = UNDEFINED;
            Ok(())
        }
        Found::At(_) => list::take_some(world, requests, (outcount, indices), statuses),
        Found::Pending => Ok(()),
    }
}

/// `MPI_Request_get_status`: whether the request has ended; it stays.
///
/// # Errors
/// There is no such request.
pub fn request_get_status(request: Request, status: Option<&mut Status>) -> Result<bool> {
    let world = world()?;
    wait::progress(world);
    let Some(ended) = wait::peek(world, request)? else { return Ok(false) };
    if let Some(status) = status {
        *status = ended.status;
    }
    Ok(true)
}

/// `MPI_Request_get_status_all`
///
/// # Errors
/// As [`waitall`].
pub fn request_get_status_all(requests: &[Request], statuses: Option<&mut [Status]>) -> Result<bool> {
    list::peek_all(world()?, requests, statuses)
}

/// `MPI_Request_get_status_any`: whether one has ended, or none can.
///
/// # Errors
/// One of the requests does not exist.
pub fn request_get_status_any(
    requests: &[Request],
    index: &mut i32,
    status: Option<&mut Status>,
) -> Result<bool> {
    let world = world()?;
    *index = UNDEFINED;
    let found = match list::find_now(world, requests)? {
        Found::Pending => return Ok(false),
        Found::Nothing => None,
        Found::At(place) => {
            *index = place as i32;
            wait::peek(world, requests[place])?
        }
    };
    if let Some(status) = status {
        *status = found.map_or(Status::EMPTY, |ended| ended.status);
    }
    Ok(true)
}

/// `MPI_Request_get_status_some`; lists have the length of `requests`.
///
/// # Errors
/// As [`waitsome`].
pub fn request_get_status_some(
    requests: &[Request],
    outcount: &mut i32,
    indices: &mut [i32],
    statuses: Option<&mut [Status]>,
) -> Result<()> {
    let world = world()?;
    *outcount = 0;
    match list::find_now(world, requests)? {
        Found::Nothing => {
            *outcount = UNDEFINED;
            Ok(())
        }
        Found::At(_) => list::peek_some(world, requests, (outcount, indices), statuses),
        Found::Pending => Ok(()),
    }
}

/// `MPI_Request_free`: the operation goes on.
///
/// # Errors
/// There is no such request.
pub fn request_free(request: &mut Request) -> Result<()> {
    wait::free(world()?, request)
}

/// `MPI_Cancel`: receives that are not matched are taken back; sends are not, and end as if nobody had asked.
///
/// # Errors
/// There is no such request.
pub fn cancel(request: Request) -> Result<()> {
    wait::cancel(world()?, request)
}

/// `MPI_Start`
///
/// # Errors
/// There is no such request, it is not persistent, or it runs.
pub fn start(request: Request) -> Result<()> {
    let start = |state: &mut State| match state {
        State::Persistent(persistent) => persistent.start(),
        _ => Err(Class::REQUEST.error("the request is not persistent: it cannot be started")),
    };
    SLOTS.with(request, start).ok_or_else(|| wait::unknown(request))?
}

/// `MPI_Startall`
///
/// # Errors
/// As [`start`]; those before the one that fails were started.
pub fn startall(requests: &[Request]) -> Result<()> {
    requests.iter().try_for_each(|&request| start(request))
}

/// `MPI_Grequest_start`
///
/// # Errors
/// MPI is not initialised.
pub fn grequest_start(callbacks: Callbacks) -> Result<Request> {
    world()?;
    Ok(State::General(Arc::new(General::new(callbacks))).into_request())
}

/// `MPI_Grequest_complete`
///
/// # Errors
/// There is no such request, or it is not a generalized one.
pub fn grequest_complete(request: Request) -> Result<()> {
    let world = world()?;
    let general = wait::general(request)?;
    general.complete();
    world.node().rouse();
    wait::bury(request, &general)
}
