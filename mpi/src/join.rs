//! The way into MPI and out of it: by the world model or by sessions, of which the first joins the job and
//! the last leaves it.

use crate::collective;
use crate::comm::{Communicator, JOINING, Members};
use crate::constant::ThreadLevel;
use crate::error::{Class, Result};
use crate::request::set_concurrent;
use crate::world::{
    AFTER, BEFORE, OPENING, PHASE, RUNNING, USERS, Users, WORLD, World, absent, from_session, users, world,
};
use newmadeleine::Session;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// The communicator on which all processes agree. It is kept, so that failures are still reported in it.
static ALL: OnceLock<Arc<Communicator>> = OnceLock::new();

/// Opens the world model.
///
/// # Errors
/// It is open or was closed already, or the job cannot be joined.
pub(crate) fn open(level: ThreadLevel) -> Result<&'static World> {
    if PHASE.compare_exchange(BEFORE, OPENING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return Err(Class::OTHER.error("MPI was initialised before, which is possible once"));
    }
    let mut users = users();
    let world = join(&users).inspect_err(|_| PHASE.store(BEFORE, Ordering::Release))?;
    // Threads of sessions go on.
    set_concurrent(level == ThreadLevel::Multiple || users.had_session);
    users.model = Some((level, std::thread::current().id()));
    PHASE.store(RUNNING, Ordering::Release);
    Ok(world)
}

/// Opens a session of MPI.
///
/// # Errors
/// The job cannot be joined, or Finalize has closed what was open.
pub(crate) fn open_session() -> Result<&'static World> {
    let mut users = users();
    let world = join(&users)?;
    set_concurrent(true);
    if !std::mem::replace(&mut users.had_session, true) {
        // SAFETY: the function is there until the process ends; if it cannot be registered,
        // the launcher only misses an orderly end.
        unsafe { atexit(at_exit) };
    }
    users.sessions += 1;
    Ok(world)
}

/// Joins the job, if that is not done.
fn join(users: &Users) -> Result<&'static World> {
    if let Ok(world) = world() {
        return Ok(world);
    }
    if users.is_closed {
        let text = "MPI_Finalize has closed the connections of this process: a session that is needed later \
                    has to be initialised before";
        return Err(Class::OTHER.error(text));
    }
    let session = Session::open().map_err(from_session)?;
    let (me, size) = (session.rank(), session.size());
    WORLD.store(Box::into_raw(Box::new(World { session })), Ordering::Release);
    let world = world()?;
    let members = || Arc::new(Members::first(size));
    let all = ALL.get_or_init(|| Arc::new(Communicator::new(JOINING, members(), None, me)));
    crate::api::define(size, world.session().program());
    crate::task::begin(world);
    crate::fault::begin(world)?;
    crate::fault::watch(all)?;
    crate::point::send::allow_early(world)?;
    collective::agree(world, all)?;
    crate::tool::event::begin(world);
    crate::api::trace(Some(world));
    Ok(world)
}

/// Closes the world model, and what is open if no session needs it.
///
/// # Errors
/// It is not open, or its launcher is gone.
pub(crate) fn close() -> Result<()> {
    let mut users = users();
    if users.model.take().is_none() {
        return Err(absent());
    }
    PHASE.store(AFTER, Ordering::Release);
    if users.had_session { Ok(()) } else { leave(&mut users) }
}

/// Closes a session of MPI.
pub(crate) fn close_session() {
    users().sessions -= 1;
}

unsafe extern "C" {
    fn atexit(called: extern "C" fn()) -> i32;
}

/// Sessions leave the job when the process ends.
extern "C" fn at_exit() {
    let Ok(mut users) = USERS.try_lock() else { return };
    if users.is_nobody() {
        // There is nobody left to tell.
        let _ = leave(&mut users);
    }
}

fn leave(users: &mut Users) -> Result<()> {
    users.is_closed = true;
    crate::api::trace(None);
    crate::fault::end();
    let world = WORLD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if world.is_null() {
        return Ok(());
    }
    // SAFETY: made by `Box::into_raw` in `join`, and only one thread can swap it out.
    let world = unsafe { Box::from_raw(world) };
    world.session.close().map_err(from_session)
}
