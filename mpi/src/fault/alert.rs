//! Makes threads that began to wait before a failure check for it.

use crate::request::Ended;
use crate::status::Status;
use crate::task::{self, Work};
use crate::world::{World, world};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time after a failure during which waiting threads leave the engine to check for failures. A waiting
/// thread advances tasks after each arrival, and at least every 50 ms, so 1 s suffices for all of them.
const RECHECK_TIME: Duration = Duration::from_secs(1);

/// Set if the launcher of NewMadeleine reports deaths to this process.
pub(super) static LAUNCHER_REPORTS: AtomicBool = AtomicBool::new(false);

/// Returns whether the launcher reports the death of a process to all ranks, so that they need not notify
/// each other. The launcher reports deaths within a job; processes that were spawned belong to other jobs.
pub(super) fn is_reported_by_launcher(process: u32) -> bool {
    LAUNCHER_REPORTS.load(Ordering::Relaxed) && world().is_ok_and(|world| process < world.session().size())
}

/// Makes all waiting threads check for failures. The caller may hold the lock of the engine.
pub(super) fn recheck_waits() {
    let Ok(world) = world() else { return };
    task::start(world, Box::new(Recheck { until: Instant::now() + RECHECK_TIME }));
    world.node().rouse();
}

/// A task without work. While a task exists, waiting threads leave the engine between two polls.
struct Recheck {
    until: Instant,
}

impl Work for Recheck {
    fn advance(&mut self, _: &World) -> Option<Ended> {
        (Instant::now() >= self.until).then(|| Ended::well(Status::EMPTY))
    }
}
