//! Implementation of the calls of User-Level Failure Mitigation.

use super::agreement::{Decision, Value};
use super::message::AgreementId;
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
use newmadeleine::engine::Engine;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

/// Checks that the job survives failures.
///
/// # Errors
/// It ends with the first death.
pub(super) fn check_on() -> Result<()> {
    if is_on() {
        return Ok(());
    }
    Err(Class::UNSUPPORTED_OPERATION.error(
        "this job does not survive failures: start it with mpiexec --ft, or set NMAD_FT=on under another \
         launcher",
    ))
}

/// Revokes a communicator in all its processes.
pub(crate) fn revoke(handle: Comm) -> Result<()> {
    check_on()?;
    let comm = comm::share(handle)?;
    at_hand::run(|engine| state::lock().revoke(engine, &comm))
}

/// Returns the failed processes of a communicator that this process knows; if `acknowledged`, only those
/// that the program has acknowledged.
pub(crate) fn failed(comm: &Communicator, acknowledged: bool) -> Processes {
    let state = state::lock();
    let bound = match acknowledged {
        true => comm.health().acknowledged.load(Ordering::Relaxed),
        false => state.failed().len(),
    };
    let known = state.failed_of(comm).take_while(|(place, _)| *place < bound);
    Processes::of(Arc::new(Members::new(known.map(|(_, process)| process))))
}

/// Acknowledges the first `most` failures among the processes of a communicator, or all if it is `None`.
/// Returns the number of acknowledged failures.
pub(crate) fn acknowledge(comm: &Communicator, most: Option<usize>) -> usize {
    let state = state::lock();
    let places: Vec<usize> = state.failed_of(comm).map(|(place, _)| place).collect();
    let count = most.unwrap_or(places.len()).min(places.len());
    let bound = count.checked_sub(1).map_or(0, |last| places[last] + 1);
    let known = comm.health().acknowledged.fetch_max(bound, Ordering::Relaxed).max(bound);
    places.iter().filter(|place| **place < known).count()
}

/// Contributes to the next agreement on a communicator; returns its identifier.
fn join(comm: &Communicator, flags: i32, most: [i64; 2]) -> Result<AgreementId> {
    at_hand::run(|engine| {
        let mut state = state::lock();
        let acknowledged = state.acknowledged(comm);
        state.join(engine, comm, Value { flags, most, acknowledged })
    })
}

/// Contributes to the next agreement on a communicator, and waits for its decision.
async fn decide(comm: &Communicator, flags: i32, most: [i64; 2]) -> Result<Decision> {
    let id = join(comm, flags, most)?;
    until(|engine| state::lock().decision(engine, id)).await
}

/// Waits until `look` returns something.
async fn until<R>(mut look: impl FnMut(&mut Engine) -> Option<R>) -> Result<R> {
    poll_fn(|_| at_hand::run(&mut look).transpose().map_or(Poll::Pending, Poll::Ready)).await
}

/// Returns the bitwise AND of the flags of all survivors, and an error if one of them has not
/// acknowledged a failure. Both are the same in all survivors.
async fn agree_flags(comm: Arc<Communicator>, flags: i32) -> Result<(i32, Option<Error>)> {
    let Decision { value, failed } = decide(&comm, flags, [0; 2]).await?;
    let text = "processes of the communicator have failed, and a survivor has not acknowledged this: call \
                MPIX_Comm_failure_ack before MPIX_Comm_agree";
    let error = (!value.acknowledged.covers(&failed)).then(|| Class::PROC_FAILED.error(text));
    Ok((value.flags, error))
}

/// Agrees with all survivors: true, in each of them, if `result` is `Ok` in all.
///
/// # Errors
/// Without `--ft`: the error in `result`.
pub(crate) fn succeeded_everywhere(comm: &Communicator, result: Result<()>) -> Result<bool> {
    if !is_on() {
        return result.map(|()| true);
    }
    let decision = block_on(decide(comm, i32::from(result.is_ok()), [0; 2]))?;
    Ok(decision.value.flags != 0)
}

/// Sets `flag` to the bitwise AND of the flags of all survivors, even if it returns an error.
pub(crate) fn agree(handle: Comm, flag: &mut i32) -> Result<()> {
    check_on()?;
    let (flags, error) = block_on(agree_flags(comm::share(handle)?, *flag))?;
    *flag = flags;
    error.map_or(Ok(()), Err)
}

/// Starts a nonblocking [`agree`], which writes to `flag` at its end.
pub(crate) fn iagree(handle: Comm, flags: i32, flag: *mut i32) -> Result<Request> {
    check_on()?;
    let named = Named::of(handle)?;
    let place = memory::contiguous(flag.cast(), size_of::<i32>());
    let future = agree_flags(named.comm.clone(), flags);
    let work = Async::new(async move {
        let (flags, error) = future.await?;
        place.write(0, &flags.to_ne_bytes());
        error.map_or(Ok(Status::EMPTY), Err)
    });
    Ok(State::Task(task::start(world()?, Box::new(work)), named).into_request())
}

/// Creates a communicator of the survivors of `old`.
async fn create_shrunk(old: Arc<Communicator>) -> Result<Communicator> {
    let mut proposal = Proposal::new(old.context().0.into());
    loop {
        let proposed = proposal.next();
        let Decision { value, failed } = decide(&old, -1, [proposed, -proposed]).await?;
        if let Some(number) = proposal.end_round(value.most)? {
            return create::survivor(&old, number, |process| !is_in(&old, &failed, process));
        }
    }
}

fn is_in(comm: &Communicator, failed: &Set, process: u32) -> bool {
    state::ranks(comm).rank_of(process).is_some_and(|rank| failed.has(rank as usize))
}

/// Creates a communicator of the survivors of another one, and waits for it.
pub(crate) fn shrink(handle: Comm) -> Result<Comm> {
    check_on()?;
    let new = block_on(create_shrunk(comm::share(handle)?))?;
    create::insert(new)
}

/// Starts a nonblocking [`shrink`]. The new communicator is usable once the request has completed. Programs
/// may set its error handler earlier (mpi4py does): until then the handle is that of a copy of the old one.
pub(crate) fn ishrink(handle: Comm) -> Result<(Comm, Request)> {
    check_on()?;
    let named = Named::of(handle)?;
    let before = Arc::new(create::awaiting(&named.comm)?);
    let new = Comm(COMMS.insert(before.clone()));
    let future = create_shrunk(named.comm.clone());
    let work = Async::new(async move {
        let survivors = future.await.inspect_err(|_| drop(COMMS.remove(new.0)))?;
        survivors.set_errhandler(before.errhandler());
        create::insert_as(new, Arc::new(survivors))?;
        Ok(Status::EMPTY)
    });
    Ok((new, State::Task(task::start(world()?, Box::new(work)), named).into_request()))
}

/// Waits until all survivors have entered `MPI_Finalize`. A process leaves only with the decision of this
/// barrier, so the departure of any process ends the wait, too.
pub(crate) fn finalize_barrier(handle: Comm) -> Result<()> {
    let comm = comm::share(handle)?;
    let id = join(&comm, 0, [0; 2])?;
    block_on(until(|engine| {
        let mut state = state::lock();
        (state.decision(engine, id).is_some() || state.has_any_left(engine, &comm)).then_some(())
    }))
}
