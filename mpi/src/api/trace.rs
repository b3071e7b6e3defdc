//! Calls that are observed: wrappers say when a function that communicates or waits begins and ends. A trace
//! (`NMAD_TRACE`) notes them, and what is kept in memory of files is written before.

use crate::comm;
use crate::file;
use crate::handle::Comm;
use crate::world::{World, is_running, world};
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};

/// Who wants to know of calls.
static OBSERVED: AtomicU8 = AtomicU8::new(0);
/// The session writes a trace.
const TRACE: u8 = 1;
/// Records of files are kept in memory.
const FILES: u8 = 2;

thread_local! {
    /// Calls that this thread is in, one inside the other (functions of the program may call MPI), and when
    /// the outermost began.
    static BEGAN: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// Whether calls are to be told.
#[inline]
pub fn is_observed() -> bool {
    OBSERVED.load(Ordering::Relaxed) != 0
}

fn observe(who: u8, is_wanted: bool) {
    match is_wanted {
        true => OBSERVED.fetch_or(who, Ordering::Relaxed),
        false => OBSERVED.fetch_and(!who, Ordering::Relaxed),
    };
}

/// Records of files are kept in memory from now on, or no longer.
pub(crate) fn observe_for_files(is_wanted: bool) {
    observe(FILES, is_wanted);
}

/// MPI is in use from now on, or no longer.
pub(crate) fn trace(world: Option<&World>) {
    let is_traced = world.is_some_and(|world| world.session().trace_now().is_some());
    observe(TRACE, is_traced);
}

/// A call begins that may tell other processes something.
#[cold]
pub fn call_begins() {
    settle_files();
    access_begins();
}

/// Has what is kept of files in memory be written, and forgets what was read: other processes may be told of
/// it, or may have told.
#[cold]
pub fn settle_files() {
    if OBSERVED.load(Ordering::Relaxed) & FILES != 0 {
        file::release();
    }
}

/// An access of one process to a file begins: no other process is told anything.
#[cold]
pub fn access_begins() {
    let (depth, began) = BEGAN.get();
    let session = open().map(World::session);
    let now =
        session.and_then(|session| if depth == 0 { session.trace_begins() } else { session.trace_now() });
    let Some(now) = now else { return };
    BEGAN.set((depth + 1, if depth == 0 { now } else { began }));
}

/// A call has ended. If it names a communicator and a process in it, it received from there.
#[cold]
pub fn call_ended(name: &'static str, comm: Option<Comm>, source: i32) {
    settle_files();
    access_ended(name, comm, source);
}

/// As [`call_ended`], of an access of one process to a file.
#[cold]
pub fn access_ended(name: &'static str, comm: Option<Comm>, source: i32) {
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
