//! A thread that makes system calls on files while the program computes, since none of them ends early: those
//! of accesses of this process, and those that owners make for others.

use crate::world::world;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
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

/// Has the thread do something that has an answer. It begins at once.
pub(super) fn answer<R: Clone + Send + Sync + 'static>(
    job: impl FnOnce() -> R + Send + 'static,
) -> Answer<R> {
    let place = Arc::new(OnceLock::new());
    let answer = Answer(place.clone());
    run(move || {
        // The only one that sets it.
        let _ = place.set(job());
        // A thread that waits for it may sleep; when nobody uses MPI any more, none does.
        if let Ok(world) = world() {
            world.node().rouse();
        }
    });
    answer
}

/// An answer that another thread gives.
pub(super) struct Answer<R>(pub(super) Arc<OnceLock<R>>);

impl<R: Clone> Future for Answer<R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        self.0.get().map_or(Poll::Pending, |answer| Poll::Ready(answer.clone()))
    }
}
