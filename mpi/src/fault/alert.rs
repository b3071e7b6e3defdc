//! Waits that began before a failure look at it.

use crate::request::Ended;
use crate::status::Status;
use crate::task::{self, Work};
use crate::world::{World, world};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time in which waits that began before a failure look at it. They look at tasks whenever something
/// arrives, and at least every 50 ms.
const ALERT: Duration = Duration::from_secs(1);

/// Whether our launcher reports deaths.
pub(super) static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Returns whether our launcher reports the death of this process to all, so that ranks that find it need
/// not tell each other: it does within each job, and processes that were started later are another one.
pub(super) fn is_told(process: u32) -> bool {
    IS_TOLD.load(Ordering::Relaxed) && world().is_ok_and(|world| process < world.session().size())
}

/// Has all waits look at what has changed. The caller may have the engine.
pub(super) fn alert() {
    let Ok(world) = world() else { return };
    task::start(world, Box::new(Alert { until: Instant::now() + ALERT }));
    world.node().rouse();
}

/// A task that does nothing: while there is one, threads that wait leave the engine between two looks.
struct Alert {
    until: Instant,
}

impl Work for Alert {
    fn advance(&mut self, _: &World) -> Option<Ended> {
        (Instant::now() >= self.until).then(|| Ended::well(Status::EMPTY))
    }
}
