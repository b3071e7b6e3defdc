//! A thread that makes system calls on files while the program computes, since none of them ends early: those
//! of accesses of this process, and those that owners make for others.

use super::of::Of;
use super::transfer::Transfer;
use crate::error::Result;
use crate::request::Ended;
use crate::status::Status;
use crate::task::Work;
use crate::world::{World, world};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::thread;

/// What the thread does.
type Job = Box<dyn FnOnce() + Send>;

/// The way to the thread; none: the system has none left.
static THREAD: LazyLock<Mutex<Option<Sender<Job>>>> = LazyLock::new(|| {
    let (to, jobs) = channel::<Job>();
    let work = move || jobs.into_iter().for_each(|job| job());
    let thread = thread::Builder::new().name("nmad-file".into()).spawn(work);
    Mutex::new(thread.is_ok().then_some(to))
});

/// Has the thread do something; where there is no thread, it is done at once.
pub(super) fn run(job: impl FnOnce() + Send + 'static) {
    let to = THREAD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match to {
        None => job(),
        Some(to) => {
            if let Err(back) = to.send(Box::new(job)) {
                back.0();
            }
        }
    }
}

/// An access that goes on.
pub(super) struct Running {
    of: Of,
    end: Arc<OnceLock<Result<Status>>>,
}

/// Begins an access.
pub(super) fn begin(transfer: Transfer) -> Running {
    let running = Running { of: Of(transfer.file.clone()), end: Arc::default() };
    let end = running.end.clone();
    run(move || {
        // The only one that sets it.
        let _ = end.set(transfer.perform());
        // A thread that waits for it may sleep; when nobody uses MPI any more, none does.
        if let Ok(world) = world() {
            world.node().rouse();
        }
    });
    running
}

impl Work for Running {
    fn advance(&mut self, _: &World) -> Option<Ended> {
        Some(ended(&self.of, self.end.get()?.clone()))
    }
}

/// How an access has ended whose end another call tells.
pub(super) fn ended(of: &Of, end: Result<Status>) -> Ended {
    match end {
        Ok(status) => Ended::well(status),
        Err(error) => Ended::badly(Status::SENT, error.on(Some(of.clone()))),
    }
}
