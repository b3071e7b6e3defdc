//! One request: waiting for it, testing it, giving it away.

use super::general::General;
use super::{Ended, Flight, SLOTS, State};
use crate::error::{Class, Error, Result};
use crate::handle::Request;
use crate::health::any_failed;
use crate::orphans::Orphans;
use crate::status::Status;
use crate::task;
use crate::world::{World, world};
use newmadeleine::RequestId;
use newmadeleine::progress::Patience;
use std::sync::Arc;

/// Waits for a request: how it ended. The null request has ended.
#[inline]
pub(crate) fn wait(world: &World, request: &mut Request) -> Result<Ended> {
    if let Some(status) = over(*request) {
        *request = Request::NULL;
        return Ok(Ended::well(status));
    }
    let Some(flight) = SLOTS.remove_flight(*request) else { return wait_slowly(world, request) };
    *request = Request::NULL;
    Ok(wait_flight(world, flight))
}

/// As [`wait`]; writes the status where it is wanted.
#[inline]
pub(crate) fn wait_into(world: &World, request: &mut Request, status: Option<&mut Status>) -> Result<()> {
    let mut well = over(*request);
    if well.is_none() {
        let Some(flight) = SLOTS.remove_flight(*request) else {
            return tell(wait_slowly(world, request)?, status);
        };
        well = flight.wait_well(world);
        if well.is_none() {
            *request = Request::NULL;
            return tell(await_state(world, State::Flight(flight)), status);
        }
    }
    *request = Request::NULL;
    if let (Some(status), Some(well)) = (status, well) {
        *status = well;
    }
    Ok(())
}

/// Writes the status where it is wanted, also that of a failure.
pub(crate) fn tell(ended: Ended, status: Option<&mut Status>) -> Result<()> {
    if let Some(status) = status {
        *status = ended.status;
    }
    ended.answer().map(drop)
}

/// Waits for a message.
#[inline]
pub(super) fn wait_flight(world: &World, flight: Flight) -> Ended {
    match flight.wait_well(world) {
        Some(status) => Ended::well(status),
        None => await_state(world, State::Flight(flight)),
    }
}

/// How a request has ended for which there is nothing to wait.
#[inline]
pub(crate) fn over(request: Request) -> Option<Status> {
    // Null ones come last: those for which there is something to wait are not to be looked at twice.
    SLOTS.over(request).or_else(|| request.is_null().then_some(Status::EMPTY))
}

/// Waits for an operation whose handle is gone, while tasks go on. A receive from any source that may
/// wait for a failed process is cancelled, and ends with that error unless its message has already
/// arrived.
#[cold]
pub(crate) fn await_state(world: &World, mut state: State) -> Ended {
    let mut patience = Patience::default();
    let mut failure = None;
    loop {
        task::advance(world);
        if state.settle(world) {
            let ended = state.finish();
            return match failure {
                Some(error) if ended.status.cancelled => Ended::badly(Status::EMPTY, error),
                _ => ended,
            };
        }
        if failure.is_none() {
            failure = state.any_source_error(Class::PROC_FAILED);
            if let (Some(_), State::AnySource(flight)) = (&failure, &state) {
                world.node().submit(|engine| engine.cancel(flight.request()));
            }
        }
        task::pause(world, &mut patience);
    }
}

/// Waits for a receive that began in this call. A receive from any source is cancelled if it may wait for a
/// failed process.
pub(crate) fn wait_for_recv(world: &World, mut request: Request) -> Result<Ended> {
    let is_any_source = |state: &State| matches!(state, State::AnySource(_));
    match SLOTS.remove_if(request, is_any_source) {
        Some(state) => Ok(await_state(world, state)),
        None => wait(world, &mut request),
    }
}

#[cold]
fn wait_slowly(world: &World, request: &mut Request) -> Result<Ended> {
    let mut patience = Patience::default();
    loop {
        // First, since the others may be many.
        if settle(world, *request)? {
            return consume(request);
        }
        task::advance(world);
        if settle(world, *request)? {
            return consume(request);
        }
        if let Some(error) = any_source_error(&[*request]) {
            return Ok(Ended::badly(Status::EMPTY, error));
        }
        task::pause(world, &mut patience);
    }
}

/// How a request ended, if it has; turns the pump once if not.
#[inline]
pub(crate) fn test(world: &World, request: &mut Request) -> Result<Option<Ended>> {
    if request.is_null() {
        return Ok(Some(Ended::well(Status::EMPTY)));
    }
    let ended = settle(world, *request)? || {
        progress(world);
        settle(world, *request)?
    };
    match ended {
        true => consume(request).map(Some),
        false => any_source_error(&[*request]).map_or(Ok(None), Err),
    }
}

/// Returns the error of the first request that may wait for a failed process. The request stays active.
pub(super) fn any_source_error(requests: &[Request]) -> Option<Error> {
    if !any_failed() {
        return None;
    }
    let look = |request: &Request| {
        SLOTS.with(*request, |state| state.any_source_error(Class::PROC_FAILED_PENDING)).flatten()
    };
    requests.iter().filter(|request| !request.is_null()).find_map(look)
}

/// Everything goes on by a step.
pub(crate) fn progress(world: &World) {
    world.node().turn();
    task::advance(world);
}

/// Whether a request has ended, as far as is known. It is not null.
#[inline]
pub(crate) fn settle(world: &World, request: Request) -> Result<bool> {
    SLOTS.with(request, |state| state.settle(world)).ok_or_else(|| unknown(request))
}

/// How a request ended; it is settled. Its handle becomes null unless it is persistent.
pub(crate) fn consume(request: &mut Request) -> Result<Ended> {
    let rearm = |state: &mut State| match state {
        State::Persistent(persistent) => {
            Some(persistent.active.take().map_or(Ended::well(Status::EMPTY), State::finish))
        }
        _ => None,
    };
    match SLOTS.with(*request, rearm) {
        Some(Some(ended)) => Ok(ended),
        _ => {
            let state = SLOTS.remove(*request).ok_or_else(|| unknown(*request))?;
            *request = Request::NULL;
            Ok(state.finish())
        }
    }
}

/// How a request ended, if it has; it stays.
pub(crate) fn peek(world: &World, request: Request) -> Result<Option<Ended>> {
    if request.is_null() {
        return Ok(Some(Ended::well(Status::EMPTY)));
    }
    let look = |state: &mut State| state.settle(world).then(|| state.peek());
    SLOTS.with(request, look).ok_or_else(|| unknown(request))
}

/// Tries to take back what a request asked for; it has to be waited for all the same.
pub(crate) fn cancel(world: &World, request: Request) -> Result<()> {
    fn take(state: &mut State) -> Option<RequestId> {
        match state {
            State::Flight(flight) | State::AnySource(flight) => {
                let id = flight.request();
                if flight.is_send() {
                    *state = State::Cancelled(flight.take_all());
                }
                Some(id)
            }
            State::Persistent(persistent) => persistent.active.as_mut().and_then(take),
            _ => None,
        }
    }
    let general = |state: &mut State| match state {
        State::General(general) => Ok(general.clone()),
        other => Err(take(other)),
    };
    match SLOTS.with(request, general).ok_or_else(|| unknown(request))? {
        Ok(general) => general.cancel(),
        Err(Some(id)) => {
            world.node().submit(|engine| engine.cancel(id));
            Ok(())
        }
        Err(None) => Ok(()),
    }
}

/// What runs although its handle was given away.
static ORPHANS: Orphans<State> = Orphans::new();

/// Gives a request away; its operation goes on.
pub(crate) fn free(world: &World, request: &mut Request) -> Result<()> {
    let Some(state) = SLOTS.remove_if(*request, |state| !matches!(state, State::General(_))) else {
        let general = general(*request)?;
        general.abandon();
        return bury(std::mem::replace(request, Request::NULL), &general);
    };
    *request = Request::NULL;
    match state {
        State::Persistent(persistent) => {
            persistent.active.into_iter().for_each(|state| orphan(world, state));
            Ok(())
        }
        state => {
            orphan(world, state);
            Ok(())
        }
    }
}

/// A generalized request.
pub(crate) fn general(request: Request) -> Result<Arc<General>> {
    let look = |state: &mut State| match state {
        State::General(general) => Some(general.clone()),
        _ => None,
    };
    let wrong = || Class::REQUEST.error("the request is not a generalized one: it ends by itself");
    SLOTS.with(request, look).ok_or_else(|| unknown(request))?.ok_or_else(wrong)
}

/// Ends a generalized request that was given away, when it is complete; until then its handle is known.
pub(crate) fn bury(request: Request, general: &General) -> Result<()> {
    let Some(answer) = general.bury() else { return Ok(()) };
    SLOTS.remove(request);
    answer
}

fn orphan(world: &World, state: State) {
    drop(ORPHANS.add(state, 0, |state| state.settle(world)));
}

/// Waits for sends that were given away: their memory is the program's until they have ended.
pub(crate) fn wait_for_orphans(world: &World) {
    let is_send = |state: &State| matches!(state, State::Flight(flight) if flight.is_send());
    let sends = ORPHANS.take().into_iter().filter(is_send);
    sends.for_each(|state| drop(await_state(world, state)));
}

#[cold]
pub(crate) fn unknown(request: Request) -> Error {
    if let Err(early) = world() {
        return early;
    }
    Class::REQUEST.error(match request {
        Request::NULL => "the request is MPI_REQUEST_NULL".to_string(),
        Request(index) => format!("there is no request {index}: it never was, or has ended"),
    })
}
