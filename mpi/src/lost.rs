//! Ranks that are gone: nothing comes from them, so that whoever waits for one looks now and then.

use crate::comm::Communicator;
use crate::error::{Class, Error};
use crate::world::World;
use newmadeleine::engine::PeerId;
use std::time::{Duration, Instant};

/// Time between two looks.
const CHECK: Duration = Duration::from_millis(10);

/// When a wait looks for ranks that are gone; it does not at first.
#[derive(Debug, Default)]
pub(crate) struct Checks(Option<Instant>);

impl Checks {
    /// Whether it is time for a look.
    pub(crate) fn is_due(&mut self) -> bool {
        let last = self.0.get_or_insert_with(Instant::now);
        let is_due = last.elapsed() >= CHECK;
        if is_due {
            *last = Instant::now();
        }
        is_due
    }
}

/// The first of these processes that is gone: its place among them, and the reason.
#[cold]
pub(crate) fn first_lost(world: &World, processes: impl IntoIterator<Item = u32>) -> Option<(usize, String)> {
    let mut processes = processes.into_iter().enumerate();
    world.node().with(|engine| {
        let failure = |process| engine.inspect().failure(PeerId(process)).map(|why| why.to_string());
        processes.find_map(|(place, process)| Some((place, failure(process)?)))
    })
}

/// A process that has died never arrives: fail instead of waiting for it.
#[cold]
pub(crate) fn lost(world: &World, comm: &Communicator) -> Option<Error> {
    let processes = comm.local().processes();
    let (place, why) = first_lost(world, processes.iter().copied())?;
    Some(Class::PROC_ABORTED.error(format!("rank {} of the job is gone: {why}", processes[place])))
}
