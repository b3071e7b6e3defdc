//! How this process learns of deaths. Our launcher reports them (it is the parent of the processes of its host, and
//! its agents report those of other hosts); a lost link says so, too, which may be earlier; under other launchers
//! (`NMAD_FT=on`) the ranks that find one tell the others.

use super::{IS_ON, state};
use crate::error::{Class, Result};
use crate::request::Ended;
use crate::services;
use crate::status::Status;
use crate::task::{self, Work};
use crate::world::{World, world};
use newmadeleine::launch::deaths::{Deaths, Report};
use newmadeleine::progress;
use newmadeleine::setting::FT;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait of the listener between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Time in which waits that began before a failure look at it. They look at tasks whenever something arrives, and at
/// least every 50 ms.
const ALERT: Duration = Duration::from_secs(1);

/// Whether our launcher reports deaths.
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// The thread that listens to the launcher, and the end of a pipe whose closing ends it.
static LISTENER: Mutex<Option<(JoinHandle<()>, OwnedFd)>> = Mutex::new(None);

/// Begins, if the job survives deaths.
///
/// # Errors
/// The descriptor of the launcher cannot be used, or the system starts no thread.
pub(crate) fn begin(world: &World) -> Result<()> {
    let failed = |why: &dyn std::fmt::Display| Class::OTHER.error(format!("--ft: {why}"));
    let deaths = Deaths::open().map_err(|why| failed(&why))?;
    let is_wished = FT.is_on().map_err(|why| failed(&why))?;
    if deaths.is_none() && !is_wished {
        return Ok(());
    }
    IS_ON.store(true, Ordering::Relaxed);
    IS_TOLD.store(deaths.is_some(), Ordering::Relaxed);
    services::update(world);
    let Some(deaths) = deaths else { return Ok(()) };
    let (stop, running) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|why| failed(&why))?;
    let thread = progress::spawn("nmad-deaths", move || listen(deaths, &stop)).map_err(|why| failed(&why))?;
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some((thread, running));
    Ok(())
}

/// Ends, before the node is closed.
pub(crate) fn end() {
    let listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((thread, running)) = listener {
        drop(running);
        // A panic of the listener has said what it had to say.
        let _ = thread.join();
    }
}

/// Returns whether our launcher reports the death of this process to all, so that ranks that find it need not tell
/// each other: it does within each job, and processes that were started later are another one.
pub(super) fn is_told(process: u32) -> bool {
    IS_TOLD.load(Ordering::Relaxed) && world().is_ok_and(|world| process < world.session().size())
}

fn listen(mut deaths: Deaths, stop: &OwnedFd) {
    loop {
        let report = deaths.wait(LOOK, stop.as_fd());
        let Ok(world) = world() else { return };
        if rustix::event::poll(
            &mut [rustix::event::PollFd::new(stop, rustix::event::PollFlags::IN)],
            Some(&rustix::event::Timespec::default()),
        ) != Ok(0)
        {
            return;
        }
        match report {
            // The end of the launcher ends the job.
            Report::Gone => return,
            Report::Died(died) => world.node().submit(|engine| {
                for process in died {
                    state::lock().declare(engine, process, "the launcher reports its death");
                }
            }),
        }
    }
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
