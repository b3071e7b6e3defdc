//! The calls of User-Level Failure Mitigation.

use super::agreement::{Decision, Value};
use super::message::Name;
use super::set::Set;
use super::state;
use crate::at_hand;
use crate::comm::agree::Proposal;
use crate::comm::{self, COMMS, Communicator, Members, Named, create};
use crate::error::{Class, Error, Result};
use crate::group::Group as Processes;
use crate::handle::{Comm, Request};
use crate::health::is_on;
use crate::memory;
use crate::request::State;
use crate::status::Status;
use crate::task::{self, Async, block_on};
use crate::world::world;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// Refuses calls in a job that ends with the first death.
pub(super) fn check_on() -> Result<()> {
    if is_on() {
        return Ok(());
    }
    Err(Class::UNSUPPORTED_OPERATION.error(
        "this job does not survive failures: start it with mpiexec --ft, or set NMAD_FT=on under another \
         launcher",
    ))
}

/// Revokes a communicator for all its processes.
pub(crate) fn revoke(handle: Comm) -> Result<()> {
    check_on()?;
    let comm = comm::share(handle)?;
    at_hand::run(|engine| state::lock().revoke(engine, &comm))
}

/// Returns the processes of a communicator that this one knows to have failed; with `acknowledged` those
/// alone that the program has acknowledged.
pub(crate) fn failed(comm: &Communicator, acknowledged: bool) -> Processes {
    let state = state::lock();
    let bound = match acknowledged {
        true => comm.health().acknowledged.load(Ordering::Relaxed),
        false => state.failed().len(),
    };
    let known = state.failed_of(comm).take_while(|(place, _)| *place < bound);
    Processes::of(Arc::new(Members::new(known.map(|(_, process)| process).collect::<Vec<u32>>())))
}

/// Acknowledges the first `most` failures of a communicator's processes, or all; returns how many are
/// acknowledged now.
pub(crate) fn acknowledge(comm: &Communicator, most: Option<usize>) -> usize {
    let state = state::lock();
    let places: Vec<usize> = state.failed_of(comm).map(|(place, _)| place).collect();
    let count = most.unwrap_or(places.len()).min(places.len());
    let bound = count.checked_sub(1).map_or(0, |last| places[last] + 1);
    let known = comm.health().acknowledged.fetch_max(bound, Ordering::Relaxed).max(bound);
    places.iter().filter(|place| **place < known).count()
}

/// Contributes to an agreement; returns its name.
fn join(comm: &Communicator, flags: i32, most: [i64; 2]) -> Result<Name> {
    at_hand::run(|engine| {
        let mut state = state::lock();
        let acknowledged = state.acknowledged(comm);
        state.join(engine, comm, Value { flags, most, acknowledged })
    })
}

/// Contributes to an agreement, and waits for its decision.
async fn decide(comm: &Communicator, flags: i32, most: [i64; 2]) -> Result<Decision> {
    let name = join(comm, flags, most)?;
    std::future::poll_fn(move |_| match at_hand::run(|engine| state::lock().decision(engine, name)) {
        Ok(None) => Poll::Pending,
        Ok(Some(decision)) => Poll::Ready(Ok(decision)),
        Err(gone) => Poll::Ready(Err(gone)),
    })
    .await
}

/// The bits that all survivors have set, and the error if one of them has not acknowledged a failure: the
/// same for all.
async fn agreed(comm: Arc<Communicator>, flags: i32) -> Result<(i32, Option<Error>)> {
    let Decision { value, failed } = decide(&comm, flags, [0; 2]).await?;
    let text = "processes of the communicator have failed, and not all others have acknowledged that";
    let error = (!value.acknowledged.covers(&failed)).then(|| Class::PROC_FAILED.error(text));
    Ok((value.flags, error))
}

/// Agrees upon the bits that all have set, which are put into `flag` also with the error.
pub(crate) fn agree(handle: Comm, flag: &mut i32) -> Result<()> {
    check_on()?;
    let (flags, error) = block_on(agreed(comm::share(handle)?, *flag))?;
    *flag = flags;
    error.map_or(Ok(()), Err)
}

/// The same in steps: the bits go to `flag` at the end.
pub(crate) fn iagree(handle: Comm, flags: i32, flag: *mut i32) -> Result<Request> {
    check_on()?;
    let named = Named::of(handle)?;
    let place = memory::contiguous(flag.cast(), size_of::<i32>());
    let future = agreed(named.comm.clone(), flags);
    let work = Async::new(async move {
        let (flags, error) = future.await?;
        place.write(0, &flags.to_ne_bytes());
        error.map_or(Ok(Status::EMPTY), Err)
    });
    Ok(State::Task(task::start(world()?, Box::new(work)), named).into_request())
}

/// Makes a communicator of the survivors.
async fn survivors(old: Arc<Communicator>) -> Result<Communicator> {
    let mut proposal = Proposal::new(old.context().0.into());
    loop {
        let proposed = proposal.next();
        let Decision { value, failed } = decide(&old, -1, [proposed, -proposed]).await?;
        if let Some(number) = proposal.answered(value.most)? {
            super::opened(number)?;
            return create::survivor(&old, number, |process| !is_in(&old, &failed, process));
        }
    }
}

fn is_in(comm: &Communicator, failed: &Set, process: u32) -> bool {
    let place = state::ranks(comm).iter().position(|member| *member == process);
    place.is_some_and(|rank| failed.has(rank))
}

/// Makes a communicator of the survivors of another one.
pub(crate) fn shrink(handle: Comm) -> Result<Comm> {
    check_on()?;
    let new = block_on(survivors(comm::share(handle)?))?;
    create::insert(new)
}

/// The same in steps; the new handle is usable when the request has ended.
pub(crate) fn ishrink(handle: Comm) -> Result<(Comm, Request)> {
    check_on()?;
    let named = Named::of(handle)?;
    let new = Comm(COMMS.reserve());
    let future = survivors(named.comm.clone());
    let work = Async::new(async move {
        create::insert_as(new, Arc::new(future.await?))?;
        Ok(Status::EMPTY)
    });
    Ok((new, State::Task(task::start(world()?, Box::new(work)), named).into_request()))
}

/// Waits until all survivors are about to leave the job. A process that has left had the decision, and
/// nobody asks it any more.
pub(crate) fn meet_to_leave(handle: Comm) -> Result<()> {
    let comm = comm::share(handle)?;
    let name = join(&comm, 0, [0; 2])?;
    block_on(std::future::poll_fn(move |_| {
        let is_over = at_hand::run(|engine| {
            let mut state = state::lock();
            state.decision(engine, name).is_some() || state.has_any_left(engine, &comm)
        });
        match is_over {
            Ok(false) => Poll::Pending,
            Ok(true) => Poll::Ready(Ok(())),
            Err(gone) => Poll::Ready(Err(gone)),
        }
    }))
}
