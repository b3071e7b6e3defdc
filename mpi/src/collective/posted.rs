//! Nonblocking collectives on the board: what they posted is there, and they end when somebody looks.

use super::lost::lost;
use crate::algorithm::board::Flag;
use crate::comm::{Communicator, Named};
use crate::error::Result;
use crate::handle::Request;
use crate::request::{Ended, State};
use crate::status::Status;
use crate::task::{self, InMemory, Served, Work};
use crate::world::{World, world};
use newmadeleine::engine::Engine;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Looks of a thread of the program between two questions whether somebody is gone.
const LOOKS: u32 = 1024;

/// How a collective went that took place in memory.
pub(super) enum Way {
    Ended,
    /// It ends when the others have come.
    Later(Flag),
}

/// A request that ends with an operation in memory.
pub(super) fn posted(on: Named, way: Way) -> Result<Request> {
    let Way::Later(ended) = way else { return Ok(State::ended(Status::EMPTY).into_request()) };
    let work = Posted { comm: on.comm.clone(), ended, looks: 0, _counts: InMemory::new() };
    Ok(State::Task(task::start(world()?, Box::new(work)), on).into_request())
}

struct Posted {
    comm: Arc<Communicator>,
    ended: Flag,
    looks: u32,
    _counts: InMemory,
}

impl Posted {
    /// Whether it has ended. Another thread that has the board goes on with this operation, too.
    fn look(&self) -> bool {
        if !self.ended.load(Ordering::Acquire)
            && let Some(Ok(mut board)) = self.comm.desk().shared.board().map(|board| board.try_lock())
        {
            board.go_on();
        }
        self.ended.load(Ordering::Acquire)
    }
}

impl Work for Posted {
    fn advance(&mut self, world: &World) -> Option<Ended> {
        if self.look() {
            return Some(Ended::well(Status::EMPTY));
        }
        self.looks += 1;
        if !self.looks.is_multiple_of(LOOKS) {
            return None;
        }
        lost(world, &self.comm).map(|error| Ended::badly(Status::EMPTY, error))
    }

    /// Others wait for our slot, or for what is still to be posted: no arrival tells when that can go on.
    fn serve(&mut self, _: &mut Engine) -> Served {
        match self.look() {
            true => Served::Ended(Ended::well(Status::EMPTY)),
            false => Served::Busy,
        }
    }
}
