//! A run that goes on in steps, for a call that waits and for a request.

use super::desk::Key;
use super::port::{Free, Held, Within};
use crate::algorithm::run::{Caller, Run};
use crate::comm::Communicator;
use crate::error::Result;
use crate::request::Ended;
use crate::status::Status;
use crate::task::{self, Served, Work};
use crate::world::{World, world};
use newmadeleine::engine::Engine;
use std::sync::{Arc, Mutex};

/// Runs to the end on the caller's thread.
pub(super) fn complete(comm: &Communicator, run: &mut Run) -> Result<()> {
    let world = world()?;
    run.start();
    if !run.calls_user() && !task::any() {
        let ended = world
            .node()
            .drive(|step| run.advance(&mut Held { step, comm, is_urgent: true }, Caller::Program), task::any);
        if let Some(ended) = ended {
            return ended;
        }
    }
    task::run(world, &mut Borrowed { comm, run }).answer().map(drop)
}

/// Takes a step of a run.
pub(super) fn advance(world: &World, comm: &Communicator, run: &mut Run) -> Option<Ended> {
    let ended = match run.calls_user() {
        true => run.advance(&mut Free { world, comm }, Caller::Program),
        false => {
            let go = |step: &mut newmadeleine::progress::Step<'_, '_>| {
                run.advance(&mut Held { step, comm, is_urgent: false }, Caller::Program)
            };
            world.node().step(go)
        }
    };
    ended.map(told)
}

/// The same on a thread of the library's own, which has the engine: what needs a function of the program
/// waits for a call.
pub(super) fn serve(engine: &mut Engine, comm: &Communicator, run: &mut Run) -> Served {
    let before = run.place();
    match run.advance(&mut Within { engine, comm }, Caller::Library) {
        Some(ended) => Served::Ended(told(ended)),
        None if run.place() != before => Served::Moved,
        None => Served::Nothing,
    }
}

fn told(ended: Result<()>) -> Ended {
    match ended {
        Ok(()) => Ended::well(Status::EMPTY),
        Err(error) => Ended::badly(Status::EMPTY, error),
    }
}

/// A run of a blocking call.
struct Borrowed<'a> {
    comm: &'a Communicator,
    run: &'a mut Run,
}

impl Work for Borrowed<'_> {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        advance(world, self.comm, self.run)
    }
}

/// A run of a nonblocking call; when it has ended, it is kept for the next one.
pub(super) struct Running {
    pub(super) comm: Arc<Communicator>,
    pub(super) run: Option<Run>,
    pub(super) key: Option<Key>,
}

impl Work for Running {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        advance(world, &self.comm, self.run.as_mut()?)
    }

    fn serve(&mut self, engine: &mut Engine) -> Served {
        self.run.as_mut().map_or(Served::Nothing, |run| serve(engine, &self.comm, run))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(run) = self.run.take().filter(Run::is_over) else { return };
        if let Some(key) = self.key.take() {
            self.comm.desk().put(key, run);
        }
    }
}

/// A run of a persistent request, which keeps it.
pub(super) struct Again {
    pub(super) comm: Arc<Communicator>,
    pub(super) run: Arc<Mutex<Run>>,
}

impl Work for Again {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        let mut run = self.run.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        advance(world, &self.comm, &mut run)
    }

    fn serve(&mut self, engine: &mut Engine) -> Served {
        // A thread of the program that has it waits for the engine.
        self.run.try_lock().map_or(Served::Busy, |mut run| serve(engine, &self.comm, &mut run))
    }
}
