//! Detection of deaths, from three sources. The launcher of NewMadeleine reports them: it is the parent
//! of the processes on its host, and its agents report deaths on other hosts. The engine detects lost
//! links, often earlier. With another launcher (`NMAD_FT=on`) a rank that detects a death notifies the
//! other ranks.

use super::alert;
use super::state::{self, Faults, Reporter};
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

/// Longest wait of the listener. A lost process whose death is not reported within one to two intervals is
/// reported to the launcher as unreachable.
const INTERVAL: Duration = Duration::from_secs(1);

/// The thread that reads the launcher's reports, and the pipe end whose closing stops the thread.
static LISTENER: Mutex<Option<(JoinHandle<()>, OwnedFd)>> = Mutex::new(None);

/// Starts detection if the job survives deaths (`mpiexec --ft` or `NMAD_FT=on`).
///
/// # Errors
/// The descriptor from the launcher is invalid, or the system cannot start a thread.
pub(crate) fn begin(world: &World) -> Result<()> {
    let failed = |why: &dyn std::fmt::Display| Class::OTHER.error(format!("--ft: {why}"));
    let deaths = Deaths::open().map_err(|why| failed(&why))?;
    let is_requested = FT.is_on().map_err(|why| failed(&why))?;
    if deaths.is_none() && !is_requested {
        return Ok(());
    }
    IS_ON.store(true, Ordering::Relaxed);
    alert::LAUNCHER_REPORTS.store(deaths.is_some(), Ordering::Relaxed);
    world.node().set_service("failures", Some(Box::new(Faults)));
    let Some(deaths) = deaths else { return Ok(()) };
    let (stop, running) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|why| failed(&why))?;
    let thread = progress::spawn("nmad-deaths", move || listen(deaths, &stop)).map_err(|why| failed(&why))?;
    *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some((thread, running));
    Ok(())
}

/// State of the listener.
#[derive(Default)]
struct Reported {
    /// Ranks whose death the launcher has reported.
    died: Vec<u32>,
    /// Failed processes without a reported death, at the end of the last interval.
    lost: Vec<u32>,
}

/// Reports processes to the launcher to which all links are lost and whose death the launcher has not
/// reported within an interval: they are alive, but no network connects them to this process.
fn report_unreachable(world: &World, reported: &mut Reported, report: &Report) {
    match report {
        Report::Died(died) if !died.is_empty() => reported.died.extend(died),
        Report::Died(_) => {
            let is_open =
                |process: &u32| alert::is_reported_by_launcher(*process) && !reported.died.contains(process);
            let lost: Vec<u32> = state::lock().failed().iter().copied().filter(is_open).collect();
            for process in lost.iter().filter(|process| reported.lost.contains(process)) {
                world.session().with_job(|job| job.tell_unreachable(*process));
            }
            reported.lost = lost;
        }
        Report::Gone => {}
    }
}

/// Stops the listener. Must be called before the node is closed.
pub(crate) fn end() {
    let listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((thread, running)) = listener {
        drop(running);
        // The panic hook has already reported a panic of the listener.
        let _ = thread.join();
    }
}

fn listen(mut deaths: Deaths, stop: &OwnedFd) {
    let mut reported = Reported::default();
    loop {
        let report = deaths.wait(INTERVAL, stop.as_fd());
        let Ok(world) = world() else { return };
        if rustix::event::poll(
            &mut [rustix::event::PollFd::new(stop, rustix::event::PollFlags::IN)],
            Some(&rustix::event::Timespec::default()),
        ) != Ok(0)
        {
            return;
        }
        report_unreachable(world, &mut reported, &report);
        match report {
            // The job ends with its launcher.
            Report::Gone => return,
            Report::Died(died) => world.node().submit(|engine| {
                for process in died {
                    state::lock().declare(engine, process, Reporter::Launcher);
                }
            }),
        }
    }
}
