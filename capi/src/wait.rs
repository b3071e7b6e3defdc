//! Waiting and testing: one request, any of several, all of them.

use crate::code::{Answer, Failure, OK, PENDING, REQUEST};
use crate::handle::Handle;
use crate::live::SessionPointer;
use crate::message::{CMessage, tell};
use crate::raw::{InOut, Out};
use newmadeleine::engine::{Duration, RequestId};
use newmadeleine::progress::UnknownRequest;
use std::ffi::c_int;

/// `NMAD_REQUEST_NULL`
const NONE: u64 = 0;
/// `NMAD_FOREVER`
pub const FOREVER: u64 = u64::MAX;
/// A timeout for one look.
pub const NOT_AT_ALL: u64 = 0;

fn bound(timeout_ns: u64) -> Option<Duration> {
    (timeout_ns != FOREVER).then(|| Duration::from_ns(timeout_ns))
}

#[cold]
fn unknown(request: u64, index: usize) -> Failure {
    let text = match request {
        NONE => "NMAD_REQUEST_NULL is no request".to_string(),
        _ => format!("request {request:#x} (place {index}) never existed, or its end was returned already"),
    };
    Failure::new(REQUEST, text)
}

/// The request at this index is unknown, unless the list has it before that already.
#[cold]
fn twice(names: &[RequestId], places: &[usize], index: usize) -> Failure {
    let name = names[index];
    match names[..index].iter().position(|&other| other == name) {
        None => unknown(name.0, places[index]),
        Some(first) => {
            let (first, second) = (places[first], places[index]);
            let text = format!("request {:#x} is in the list twice (places {first} and {second})", name.0);
            Failure::new(REQUEST, text)
        }
    }
}

/// The requests of a list with their places, those that are none left out.
fn running(requests: InOut<u64>, count: usize) -> Result<(Vec<usize>, Vec<RequestId>), Failure> {
    let requests = requests.list("requests", count)?;
    let named = (0..count).map(|index| (index, RequestId(requests.get(index))));
    Ok(named.filter(|(_, request)| request.0 != NONE).unzip())
}

pub fn one(session: SessionPointer, request: InOut<u64>, timeout_ns: u64, message: Out<CMessage>) -> Answer {
    let (handle, request) = (session.get()?, request.list("request", 1)?);
    let name = request.get(0);
    match handle.node().wait_any_within(&[RequestId(name)], bound(timeout_ns)) {
        Ok(Some((_, outcome))) => {
            request.set(0, NONE);
            tell(handle, outcome, message, 0)
        }
        Ok(None) => Ok(PENDING),
        Err(UnknownRequest { .. }) => Err(unknown(name, 0)),
    }
}

pub fn any(
    session: SessionPointer,
    requests: InOut<u64>,
    count: usize,
    timeout_ns: u64,
    index: Out<usize>,
    message: Out<CMessage>,
) -> Answer {
    index.required("index")?.set(count);
    let handle = session.get()?;
    let (places, names) = running(requests, count)?;
    if names.is_empty() {
        return Err(Failure::new(REQUEST, "there is no request in the list"));
    }
    match handle.node().wait_any_within(&names, bound(timeout_ns)) {
        Ok(Some((place, outcome))) => {
            index.set(places[place]);
            requests.set(places[place], NONE);
            tell(handle, outcome, message, 0)
        }
        Ok(None) => Ok(PENDING),
        Err(UnknownRequest { index }) => Err(unknown(names[index].0, places[index])),
    }
}

pub fn all(
    session: SessionPointer,
    requests: InOut<u64>,
    count: usize,
    timeout_ns: u64,
    messages: Out<CMessage>,
    codes: Out<c_int>,
) -> Answer {
    let handle = session.get()?;
    let (places, names) = running(requests, count)?;
    let ended = handle.node().wait_all_within(&names, bound(timeout_ns));
    let outcomes = match ended {
        Ok(Some(outcomes)) => outcomes,
        Ok(None) => return Ok(PENDING),
        Err(UnknownRequest { index }) => return Err(twice(&names, &places, index)),
    };
    let mut first = Ok(OK);
    (0..count).for_each(|index| codes.set_at(index, OK));
    for (place, outcome) in places.into_iter().zip(outcomes) {
        requests.set(place, NONE);
        let told = tell(handle, outcome, messages, place);
        codes.set_at(place, told.as_ref().map_or_else(|failure| failure.code, |code| *code));
        first = first.and(told);
    }
    first
}

pub fn cancel(session: SessionPointer, request: u64, accepted: Out<c_int>) -> Answer {
    let handle: &Handle = session.get()?;
    let request = RequestId(request);
    handle.node().has_ended(request).map_err(|_| unknown(request.0, 0))?;
    accepted.set(c_int::from(handle.node().submit(|engine| engine.cancel(request))));
    Ok(OK)
}
