//! Calls for a trace (`NMAD_TRACE`): wrappers say when a function that communicates or waits begins and ends.

use crate::comm;
use crate::handle::Comm;
use crate::world::{World, is_running, world};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The session writes a trace.
static TRACED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Calls that this thread is in, one inside the other (functions of the program may call MPI), and when
    /// the outermost began.
    static BEGAN: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// Whether calls are to be noted.
#[inline]
pub fn is_traced() -> bool {
    TRACED.load(Ordering::Relaxed)
}

/// MPI is in use from now on, or no longer.
pub(crate) fn trace(world: Option<&World>) {
    let is_traced = world.is_some_and(|world| world.session().trace_now().is_some());
    TRACED.store(is_traced, Ordering::Relaxed);
}

/// A call begins.
#[cold]
pub fn call_begins() {
    let Some(now) = open().and_then(|world| world.session().trace_now()) else { return };
    let (depth, began) = BEGAN.get();
    BEGAN.set((depth + 1, if depth == 0 { now } else { began }));
}

/// A call has ended. If it names a communicator and a process in it, it received from there.
#[cold]
pub fn call_ended(name: &'static str, comm: Option<Comm>, source: i32) {
    let Some(world) = open() else { return };
    let (depth, began) = BEGAN.get();
    BEGAN.set((depth.saturating_sub(1), began));
    if depth == 1 {
        let from = comm.and_then(|comm| comm::lookup(comm).ok()?.peers().world(source));
        world.session().trace_call(name, began, from);
    }
}

fn open() -> Option<&'static World> {
    if is_running() { world().ok() } else { None }
}
