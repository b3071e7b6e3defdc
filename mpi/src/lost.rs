//! Detection of ranks that are gone: they send nothing, so a thread that waits for one must check for that at
//! intervals.

use crate::comm::Communicator;
use crate::error::Error;
use crate::health::{class_of_loss, revoked};
use crate::world::World;
use newmadeleine::engine::PeerId;
use std::time::{Duration, Instant};

/// Time between two checks.
const CHECK: Duration = Duration::from_millis(10);

/// The times at which a wait checks for ranks that are gone; the first check is due after [`CHECK`].
#[derive(Debug, Default)]
pub(crate) struct Checks(Option<Instant>);

impl Checks {
    /// Returns whether a check is due, and notes it.
    pub(crate) fn is_due(&mut self) -> bool {
        let last = self.0.get_or_insert_with(Instant::now);
        let is_due = last.elapsed() >= CHECK;
        if is_due {
            *last = Instant::now();
        }
        is_due
    }
}

/// Returns the first of these processes that is gone: its place among them, and the reason.
#[cold]
pub(crate) fn first_lost(world: &World, processes: impl IntoIterator<Item = u32>) -> Option<(usize, String)> {
    let mut processes = processes.into_iter().enumerate();
    world.node().with(|engine| {
        let failure = |process| engine.inspect().failure(PeerId(process)).map(|why| why.to_string());
        processes.find_map(|(place, process)| Some((place, failure(process)?)))
    })
}

/// Returns the error of the first process of a communicator that is gone, or that of a revoked communicator.
#[cold]
pub(crate) fn lost(world: &World, comm: &Communicator) -> Option<Error> {
    if comm.health().is_revoked() {
        return Some(revoked());
    }
    let members = comm.local();
    let (place, why) = first_lost(world, members.processes())?;
    let process = members.world(place as i32)?;
    Some(class_of_loss().error(format!("rank {process} of the job is gone: {why}")))
}
