//! Accesses of one process that go on while the program computes: a thread makes the system calls, since none
//! of those on files ends early.

use super::owner::Of;
use super::transfer::Transfer;
use crate::error::Result;
use crate::request::Ended;
use crate::status::Status;
use crate::task::Work;
use crate::world::{World, world};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::thread;

/// An access and the place for its end.
struct Job {
    transfer: Transfer,
    end: Arc<OnceLock<Result<Status>>>,
}

/// The way to the thread; none: the system has none left.
static THREAD: LazyLock<Mutex<Option<Sender<Job>>>> = LazyLock::new(|| {
    let (to, jobs) = channel::<Job>();
    let work = move || {
        for Job { transfer, end } in jobs {
            // The only thread that sets it.
            let _ = end.set(transfer.perform());
            // A thread that waits for it may sleep; when nobody uses MPI any more, none does.
            if let Ok(world) = world() {
                world.node().rouse();
            }
        }
    };
    let thread = thread::Builder::new().name("nmad-file".into()).spawn(work);
    Mutex::new(thread.is_ok().then_some(to))
});

/// An access that goes on.
pub(super) struct Running {
    of: Of,
    end: Arc<OnceLock<Result<Status>>>,
}

/// Begins an access. None: there is no thread for it, and it has been done.
pub(super) fn begin(transfer: Transfer) -> std::result::Result<Running, Result<Status>> {
    let (of, end) = (Of(transfer.file.clone()), Arc::new(OnceLock::new()));
    let to = THREAD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(to) = to else { return Err(transfer.perform()) };
    match to.send(Job { transfer, end: end.clone() }) {
        Ok(()) => Ok(Running { of, end }),
        Err(back) => Err(back.0.transfer.perform()),
    }
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
