//! How this process learns of deaths. Our launcher reports them (it is the parent of the processes of its
//! host, and its agents report those of other hosts); a lost link says so, too, which may be earlier;
//! under other launchers (`NMAD_FT=on`) the ranks that find one tell the others.

use super::alert;
use super::state::{self, Faults};
use crate::error::{Class, Result};
use crate::health::IS_ON;
use crate::world::{World, world};
use newmadeleine::launch::deaths::{Deaths, Report};
use newmadeleine::progress;
use newmadeleine::setting::FT;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait of the listener between two looks.
const LOOK: Duration = Duration::from_secs(1);

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
    alert::IS_TOLD.store(deaths.is_some(), Ordering::Relaxed);
    world.node().set_service("failures", Some(Box::new(Faults)));
    let Some(deaths) = deaths else { return Ok(()) };
    let (stop, running) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|why| failed(&why))?;
    let thread = progress::spawn("nmad-deaths", move || listen(deaths, &stop)).map_err(|why| failed(&why))?;
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some((thread, running));
    Ok(())
}

/// Deaths that the launcher has reported, and processes that this one had lost at the last look.
#[derive(Default)]
struct Reported {
    died: Vec<u32>,
    lost: Vec<u32>,
}

/// Tells the launcher of processes to which all links are lost, and whose death it has not reported
/// within the time between two looks: they are alive, and the networks between are not.
fn tell_unreachable(world: &World, reported: &mut Reported, report: &Report) {
    match report {
        Report::Died(died) if !died.is_empty() => reported.died.extend(died),
        Report::Died(_) => {
            let is_open = |process: &u32| alert::is_told(*process) && !reported.died.contains(process);
            let lost: Vec<u32> = state::lock().failed().iter().copied().filter(is_open).collect();
            for process in lost.iter().filter(|process| reported.lost.contains(process)) {
                world.session().with_job(|job| job.tell_unreachable(*process));
            }
            reported.lost = lost;
        }
        Report::Gone => {}
    }
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

fn listen(mut deaths: Deaths, stop: &OwnedFd) {
    let mut reported = Reported::default();
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
        tell_unreachable(world, &mut reported, &report);
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
