//! Requests: what runs, and how it ended.

mod ended;
mod flight;
pub mod general;
pub(crate) mod list;
mod persistent;
#[allow(unsafe_code)]
mod slots;
pub(crate) mod wait;

pub(crate) use ended::Ended;
pub(crate) use flight::{Flight, Sender};
pub(crate) use persistent::Persistent;
pub(crate) use slots::{SLOTS, set_concurrent};

use crate::comm::Named;
use crate::error::{Class, Error};
use crate::fault;
use crate::handle::{Comm, Request};
use crate::health::{any_failed, is_on, revoked};
use crate::status::Status;
use crate::task::Task;
use crate::world::World;
use general::General;
use newmadeleine::engine;
use newmadeleine::progress::Outcome;
use std::sync::Arc;

/// What a request is.
pub(crate) enum State {
    /// A message under way.
    Flight(Flight),
    /// A receive from any source in a job that survives failures: its waits check for failures.
    AnySource(Flight),
    /// A send that was cancelled. Its wait is local, but the first look says that it goes on: programs take
    /// one that has ended in the call that cancels it for received.
    Cancelled(Flight),
    /// It has ended, and no call has returned that yet.
    Ended(Ended),
    /// Something in several steps, on a communicator.
    Task(Arc<Task>, Named),
    /// Something that can be started again.
    Persistent(Box<Persistent>),
    /// Something that the program does.
    General(Arc<General>),
}

impl State {
    /// A request for it.
    #[inline]
    pub(crate) fn into_request(self) -> Request {
        SLOTS.insert(self)
    }

    /// A receive.
    pub(crate) fn of_recv(flight: Flight) -> State {
        if flight.is_any_source() && is_on() { State::AnySource(flight) } else { State::Flight(flight) }
    }

    /// Returns the error of an active receive from any source that may wait for a failed process.
    pub(crate) fn any_source_error(&self, class: Class) -> Option<Error> {
        match self {
            State::AnySource(flight) if any_failed() => {
                fault::any_source_error(flight.any_source_comm()?, class)
            }
            State::Persistent(persistent) => persistent.active.as_ref()?.any_source_error(class),
            _ => None,
        }
    }

    /// It has ended already.
    pub(crate) fn ended(status: Status) -> State {
        State::Ended(Ended::well(status))
    }

    /// Whether it has ended, as far as is known without turning the pump; takes note of how.
    pub(crate) fn settle(&mut self, world: &World) -> bool {
        let ended = match self {
            State::Ended(_) => return true,
            State::Flight(flight) | State::AnySource(flight) => flight.take(world),
            State::Cancelled(flight) => {
                *self = State::Flight(flight.take_all());
                return false;
            }
            State::Task(task, comm) => task.ended().map(|ended| ended.clone().on(Some(comm.clone()))),
            State::Persistent(persistent) => {
                return persistent.active.as_mut().is_none_or(|state| state.settle(world));
            }
            State::General(general) => return general.is_complete(),
        };
        let Some(ended) = ended else { return false };
        *self = State::Ended(ended);
        true
    }

    /// How it ended; it is settled. Its operation is over.
    pub(crate) fn finish(self) -> Ended {
        match self {
            State::Ended(ended) => ended,
            State::General(general) => general.finish(),
            State::Persistent(persistent) => {
                persistent.active.map_or(Ended::well(Status::EMPTY), State::finish)
            }
            State::Flight(_) | State::AnySource(_) | State::Cancelled(_) | State::Task(..) => {
                Ended::well(Status::EMPTY)
            }
        }
    }

    /// How it ended; it is settled, and stays.
    pub(crate) fn peek(&self) -> Ended {
        match self {
            State::Ended(ended) => ended.clone(),
            State::General(general) => general.query(),
            State::Persistent(persistent) => {
                persistent.active.as_ref().map_or(Ended::well(Status::EMPTY), State::peek)
            }
            State::Flight(_) | State::AnySource(_) | State::Cancelled(_) | State::Task(..) => {
                Ended::well(Status::EMPTY)
            }
        }
    }

    /// The communicator of what runs, if it has one.
    pub(crate) fn comm(&self) -> Option<Comm> {
        match self {
            State::Flight(flight) | State::AnySource(flight) | State::Cancelled(flight) => {
                Some(flight.comm())
            }
            State::Task(_, comm) => Some(comm.handle),
            State::Persistent(persistent) => {
                let side = persistent.side.as_ref().map(|side| side.on().handle);
                side.or_else(|| persistent.active.as_ref().and_then(State::comm))
            }
            State::Ended(ended) => ended.error.as_ref().and_then(Error::comm),
            State::General(_) => None,
        }
    }

    /// Persistent, and not started.
    pub(crate) fn is_inactive(&self) -> bool {
        matches!(self, State::Persistent(persistent) if persistent.active.is_none())
    }
}

/// How a send ended.
#[inline]
pub(crate) fn sent(world: &World, outcome: Outcome) -> Ended {
    match outcome {
        Ok(_) => Ended::well(Status::SENT),
        Err(error) => failed(world, Status::SENT, error),
    }
}

/// How a receive ended.
#[inline]
pub(crate) fn received(world: &World, sender: impl Fn(&engine::Envelope) -> i32, outcome: Outcome) -> Ended {
    match outcome {
        Ok(envelope) => Ended::well(status(sender(&envelope), &envelope)),
        Err(error @ engine::Error::Truncated { envelope, capacity }) => {
            let status = Status { count_bytes: capacity as i64, ..status(sender(&envelope), &envelope) };
            failed(world, status, error)
        }
        Err(error) => failed(world, Status::SENT, error),
    }
}

/// Of a message of this rank.
#[inline]
pub(crate) fn status(source: i32, envelope: &engine::Envelope) -> Status {
    Status { source, tag: envelope.tag.0 as i32, count_bytes: envelope.len as i64, ..Status::SENT }
}

#[cold]
fn failed(world: &World, status: Status, error: engine::Error) -> Ended {
    if error == engine::Error::Cancelled {
        return Ended::well(Status { cancelled: true, ..status });
    }
    Ended::badly(status, explain(world, error))
}

/// The words for what the engine says.
#[cold]
pub(crate) fn explain(world: &World, error: engine::Error) -> Error {
    if error == engine::Error::Revoked {
        return revoked();
    }
    match world.session().outcome(Err(error)) {
        Ok(_) => Class::INTERN.error("a request that failed has an envelope"),
        Err(why) => crate::world::from_session(why),
    }
}
