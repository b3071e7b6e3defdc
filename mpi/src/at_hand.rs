//! The engine of the node for work that is written as a future: by the node's lock, or, on the thread of the
//! library that has the lock already while it goes on with tasks, the one at hand.
#![allow(unsafe_code)]

use crate::error::Result;
use crate::world::world;
use newmadeleine::RequestId;
use newmadeleine::engine::Engine;
use newmadeleine::progress::Outcome;
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};

thread_local! {
    /// The engine that is lent to this thread; null: none is.
    static ENGINE: Cell<*mut Engine> = const { Cell::new(null_mut()) };
    /// Something was submitted to it, or taken from it.
    static USED: Cell<bool> = const { Cell::new(false) };
}

/// Puts the pointer back, also in a panic.
struct Back(*mut Engine);

impl Drop for Back {
    fn drop(&mut self) {
        ENGINE.set(self.0);
    }
}

/// Runs with an engine at hand; the answer, and whether that was used.
pub(crate) fn lend<R>(engine: &mut Engine, run: impl FnOnce() -> R) -> (R, bool) {
    USED.set(false);
    let back = Back(ENGINE.replace(engine));
    let answer = run();
    drop(back);
    (answer, USED.get())
}

/// Gives the engine at hand to `look`; none: there is none.
pub(crate) fn with<R>(look: impl FnOnce(&mut Engine) -> R) -> Option<R> {
    let mut engine = NonNull::new(ENGINE.replace(null_mut()))?;
    let _back = Back(engine.as_ptr());
    // SAFETY: whoever lent it does nothing with it until its run ends, and it was taken away meanwhile, so
    // that nobody finds it twice.
    Some(look(unsafe { engine.as_mut() }))
}

/// Gives the engine at hand, or else that of the node, to `look`, which may submit something.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn run<R>(look: impl FnOnce(&mut Engine) -> R) -> Result<R> {
    let mut look = Some(look);
    let mut once = |engine: &mut Engine| look.take().map(|look| look(engine));
    let answer = match with(&mut once) {
        Some(answer) => {
            USED.set(true);
            answer
        }
        None => world()?.node().submit(once),
    };
    answer.ok_or_else(|| crate::Class::INTERN.error("the engine was asked twice"))
}

/// Submits a request.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn submit(submission: impl FnOnce(&mut Engine) -> RequestId) -> Result<RequestId> {
    run(submission)
}

/// The outcome of a request, if it has ended.
///
/// # Errors
/// MPI is not initialized.
pub(crate) fn take(request: RequestId) -> Result<Option<Outcome>> {
    match with(|engine| engine.take(request)) {
        Some(outcome) => {
            USED.set(USED.get() || outcome.is_some());
            Ok(outcome)
        }
        None => Ok(world()?.node().take(request)),
    }
}
