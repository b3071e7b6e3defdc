//! Ranks that will never come.

use crate::comm::Communicator;
use crate::error::{Class, Error};
use crate::world::World;
use newmadeleine::engine::PeerId;

/// A process that has died never arrives: fail instead of waiting for it.
#[cold]
pub(super) fn lost(world: &World, comm: &Communicator) -> Option<Error> {
    let failure = |&process: &u32| {
        let why = world.node().with(|engine| engine.inspect().failure(PeerId(process)))?;
        Some(Class::PROC_ABORTED.error(format!("rank {process} of the job is gone: {why}")))
    };
    comm.local().processes().iter().find_map(failure)
}
