//! Nonblocking collectives on the board: their data was posted in the call, and they end at a later look, or
//! go on with messages for parts that were too long to be posted.

use super::meeting;
use super::running;
use crate::algorithm::board::{Flag, Ranks};
use crate::algorithm::run::Run;
use crate::comm::{Communicator, Named};
use crate::error::Result;
use crate::handle::Request;
use crate::lost::lost;
use crate::request::{Ended, State};
use crate::status::Status;
use crate::task::{self, Served, Work};
use crate::world::{World, world};
use newmadeleine::engine::Engine;
use std::sync::Arc;

/// Looks of a thread of the program between two questions whether somebody is gone.
const LOOKS: u32 = 1024;

/// Starts the messages that are left, from these ranks or to them.
pub(super) type Rest = Box<dyn FnOnce(Ranks) -> Result<Run> + Send>;

/// How a collective went that took place in memory.
pub(super) enum Way {
    Ended,
    /// It ends when the others have come, or goes on with messages then.
    Later(Flag, Option<Rest>),
}

/// A request that ends with an operation in memory.
pub(super) fn posted(on: Named, way: Way) -> Result<Request> {
    let Way::Later(ended, rest) = way else { return Ok(State::ended(Status::EMPTY).into_request()) };
    let stage = Stage::Memory { ended, rest, looks: 0, is_set: false };
    let work = Posted { comm: on.comm.clone(), stage, asleep: 0 };
    Ok(State::Task(task::start(world()?, Box::new(work)), on).into_request())
}

struct Posted {
    comm: Arc<Communicator>,
    stage: Stage,
    /// Ranks to wake.
    asleep: u64,
}

enum Stage {
    Memory { ended: Flag, rest: Option<Rest>, looks: u32, is_set: bool },
    Messages(Run),
}

impl Posted {
    /// Looks whether the operation in memory has ended; if that leaves messages, they are started. Another
    /// thread that has the board goes on with this operation, too.
    fn look(&mut self) -> Option<Ended> {
        let Stage::Memory { ended, rest, .. } = &mut self.stage else { return None };
        if ended.get().is_none()
            && let Some(Ok(mut board)) = self.comm.desk().shared.board().map(|board| board.try_lock())
            && board.go_on()
        {
            self.asleep |= meeting::sleepers(board.memory()).take();
        }
        let rest = match ended.get()? {
            Ok(left) if left.is_empty() => None,
            Ok(left) => rest.take().map(|rest| rest(*left)),
            Err(error) => Some(Err(error.clone())),
        };
        match rest {
            None => Some(Ended::well(Status::EMPTY)),
            Some(Ok(run)) => {
                self.stage = Stage::Messages(run);
                None
            }
            Some(Err(error)) => Some(Ended::badly(Status::EMPTY, error)),
        }
    }

    fn wake(&mut self, engine: &mut Engine) {
        meeting::wake(engine, &self.comm, std::mem::take(&mut self.asleep));
    }
}

impl Work for Posted {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        let ended = self.look();
        if self.asleep != 0 {
            world.node().submit(|engine| self.wake(engine));
        }
        if ended.is_some() {
            return ended;
        }
        match &mut self.stage {
            Stage::Messages(run) => running::advance(world, &self.comm, run),
            Stage::Memory { looks, .. } => {
                *looks += 1;
                if !looks.is_multiple_of(LOOKS) && self.comm.health().is_well() {
                    return None;
                }
                lost(world, &self.comm).map(|error| Ended::badly(Status::EMPTY, error))
            }
        }
    }

    /// Others wait for our slot, or for what is still to be posted: no arrival tells when that can go on.
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let ended = self.look();
        if self.asleep != 0 {
            self.wake(engine);
        }
        if let Some(ended) = ended {
            return Served::Ended(ended);
        }
        match &mut self.stage {
            Stage::Messages(run) => running::serve(engine, &self.comm, run),
            Stage::Memory { .. } => Served::Busy,
        }
    }

    fn may_sleep(&mut self) -> bool {
        let Stage::Memory { is_set, .. } = &mut self.stage else { return true };
        // A thread that has the board goes on with this operation too, and calls `rouse` afterwards.
        let Some(Ok(board)) = self.comm.desk().shared.board().map(|board| board.try_lock()) else {
            return true;
        };
        meeting::sleepers(board.memory()).may_sleep(self.comm.rank() as usize, is_set)
    }
}
