//! Several requests: waiting for any, some or all of them, and testing them.

use super::flight::Look;
use super::wait::{any_source_error, consume, over, peek, progress, settle, unknown, wait};
use super::{Ended, SLOTS, State};
use crate::error::{Class, Error, Result};
use crate::handle::Request;
use crate::status::Status;
use crate::task;
use crate::world::World;
use newmadeleine::progress::Patience;

/// Where statuses go, if anybody wants them.
pub(crate) type Statuses<'a> = Option<&'a mut [Status]>;

/// Errors of several requests: each is in its status, the first one's words and communicator are answered.
struct Tally<'a> {
    statuses: Statuses<'a>,
    first: Option<Error>,
}

impl Tally<'_> {
    fn note(&mut self, place: usize, index: usize, ended: Ended) {
        if let Some(statuses) = &mut self.statuses {
            let error = ended.error.as_ref().map_or(Class::SUCCESS, Error::class);
            statuses[place] = Status { error, sets_error: true, ..ended.status };
        }
        if let Some(error) = ended.error {
            let text = || format!("request {index} of the list: {error}");
            self.first.get_or_insert_with(|| Class::IN_STATUS.error(text()).beside(&error));
        }
    }

    fn note_well(&mut self, place: usize, status: Status) {
        if let Some(statuses) = &mut self.statuses {
            statuses[place] = Status { sets_error: true, ..status };
        }
    }

    fn answer(self) -> Result<()> {
        self.first.map_or(Ok(()), Err)
    }
}

/// Waits for all.
pub(crate) fn wait_all(world: &World, requests: &mut [Request], statuses: Statuses<'_>) -> Result<()> {
    let mut tally = Tally { statuses, first: None };
    let mut next = 0;
    loop {
        next = wait_well(world, requests, next, |index, status| tally.note_well(index, status));
        // Requests that are not plain messages, and those that failed, take the slow path.
        let Some(request) = requests.get_mut(next) else { return tally.answer() };
        let ended = wait(world, request)?;
        tally.note(next, next, ended);
        next += 1;
    }
}

/// Waits for requests in their order with one lock for all of them, from `next` on, as long as they are
/// messages and end well: the first that is or does not.
#[inline]
fn wait_well(
    world: &World,
    requests: &mut [Request],
    next: usize,
    mut note: impl FnMut(usize, Status),
) -> usize {
    let mut next = skip(requests, next, &mut note);
    if next == requests.len() {
        return next;
    }
    world.node().wait_look(|engine| {
        while let Some(request) = requests.get_mut(next) {
            let status = match SLOTS.land(*request, engine) {
                Look::Well(status) => status,
                Look::Runs(request) if !task::any() => return Err(request),
                Look::Runs(_) | Look::Badly => break,
            };
            *request = Request::NULL;
            note(next, status);
            next = skip(requests, next + 1, &mut note);
        }
        Ok(())
    });
    next
}

/// Passes requests for which there is nothing to wait, from `next` on: the first that is not such.
#[inline]
fn skip(requests: &mut [Request], mut next: usize, note: &mut impl FnMut(usize, Status)) -> usize {
    while let Some(request) = requests.get_mut(next)
        && let Some(status) = over(*request)
    {
        *request = Request::NULL;
        note(next, status);
        next += 1;
    }
    next
}

/// Whether all have ended; if not, none is touched.
pub(crate) fn test_all(world: &World, requests: &mut [Request], statuses: Statuses<'_>) -> Result<bool> {
    if !all_settled(world, requests)? {
        progress(world);
        if !all_settled(world, requests)? {
            return any_source_error(requests).map_or(Ok(false), Err);
        }
    }
    let mut tally = Tally { statuses, first: None };
    for (index, request) in requests.iter_mut().enumerate() {
        let ended = if request.is_null() { Ended::well(Status::EMPTY) } else { consume(request)? };
        tally.note(index, index, ended);
    }
    tally.answer().map(|()| true)
}

/// As [`test_all`], but all stay.
pub(crate) fn peek_all(world: &World, requests: &[Request], statuses: Statuses<'_>) -> Result<bool> {
    progress(world);
    if !all_settled(world, requests)? {
        return Ok(false);
    }
    let mut tally = Tally { statuses, first: None };
    for (index, &request) in requests.iter().enumerate() {
        tally.note(index, index, peek(world, request)?.unwrap_or(Ended::well(Status::EMPTY)));
    }
    tally.answer().map(|()| true)
}

fn all_settled(world: &World, requests: &[Request]) -> Result<bool> {
    for &request in requests.iter().filter(|request| !request.is_null()) {
        if !settle(world, request)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The state of a list of requests.
pub(crate) enum Found {
    /// None of them can end: all are null or not started.
    Nothing,
    /// None has ended yet.
    Pending,
    /// This one has.
    At(usize),
}

/// The first that has ended.
pub(crate) fn find(world: &World, requests: &[Request]) -> Result<Found> {
    let mut found = Found::Nothing;
    for (index, &request) in requests.iter().enumerate().filter(|(_, request)| !request.is_null()) {
        match look(world, request)? {
            None => {}
            Some(true) => return Ok(Found::At(index)),
            Some(false) => found = Found::Pending,
        }
    }
    Ok(found)
}

/// Whether a request has ended; none: it cannot.
fn look(world: &World, request: Request) -> Result<Option<bool>> {
    let look = |state: &mut State| (!state.is_inactive()).then(|| state.settle(world));
    SLOTS.with(request, look).ok_or_else(|| unknown(request))
}

/// Waits for any: its place in the list, and how it ended.
pub(crate) fn wait_any(world: &World, requests: &mut [Request]) -> Result<Option<(usize, Ended)>> {
    let mut patience = Patience::default();
    loop {
        match find(world, requests)? {
            Found::Nothing => return Ok(None),
            Found::At(index) => return Ok(Some((index, consume(&mut requests[index])?))),
            Found::Pending => any_source_error(requests).map_or(Ok(()), Err)?,
        }
        task::advance(world);
        task::pause(world, &mut patience);
    }
}

/// One that has ended; turns the pump once if none has.
pub(crate) fn find_now(world: &World, requests: &[Request]) -> Result<Found> {
    match find(world, requests)? {
        Found::Pending => {
            progress(world);
            let found = find(world, requests)?;
            if matches!(found, Found::Pending)
                && let Some(error) = any_source_error(requests)
            {
                return Err(error);
            }
            Ok(found)
        }
        other => Ok(other),
    }
}

/// All that have ended: their number, and places in `indices`.
///
/// # Errors
/// [`Class::IN_STATUS`], with the number and the places set.
pub(crate) fn take_some(
    world: &World,
    requests: &mut [Request],
    (count, indices): (&mut i32, &mut [i32]),
    statuses: Statuses<'_>,
) -> Result<()> {
    let mut tally = Tally { statuses, first: None };
    let mut place = 0;
    for (index, request) in requests.iter_mut().enumerate().filter(|(_, request)| !request.is_null()) {
        if look(world, *request)? == Some(true) {
            tally.note(place, index, consume(request)?);
            indices[place] = index as i32;
            place += 1;
            *count = place as i32;
        }
    }
    tally.answer()
}

/// As [`take_some`], but all stay.
pub(crate) fn peek_some(
    world: &World,
    requests: &[Request],
    (count, indices): (&mut i32, &mut [i32]),
    statuses: Statuses<'_>,
) -> Result<()> {
    let mut tally = Tally { statuses, first: None };
    let mut place = 0;
    for (index, &request) in requests.iter().enumerate().filter(|(_, request)| !request.is_null()) {
        if look(world, request)? == Some(true)
            && let Some(ended) = peek(world, request)?
        {
            tally.note(place, index, ended);
            indices[place] = index as i32;
            place += 1;
            *count = place as i32;
        }
    }
    tally.answer()
}
