//! The process as MPI sees it: a session of the engine's, which is open while the program uses MPI by one of
//! the two ways of the standard: the *world model* (from Init to Finalize, once) or *sessions* of MPI (as
//! often as it likes).

use crate::collective;
use crate::comm::{Communicator, Members};
use crate::constant::ThreadLevel;
use crate::error::{Class, Error, Result};
use newmadeleine::progress::Node;
use newmadeleine::{Session, SessionError};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;

/// The open world; null before and after.
static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());
/// Of the world model.
static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
static USERS: Mutex<Users> = Mutex::new(Users::new());

const BEFORE: u8 = 0;
const OPENING: u8 = 1;
const RUNNING: u8 = 2;
const AFTER: u8 = 3;

/// Who uses what is open.
struct Users {
    /// The level of the world model and the thread that initialised, until it is finalised.
    model: Option<(ThreadLevel, ThreadId)>,
    sessions: usize,
    /// Then it stays open until the process ends: there may be another session.
    had_session: bool,
    is_closed: bool,
}

impl Users {
    const fn new() -> Users {
        Users { model: None, sessions: 0, had_session: false, is_closed: false }
    }

    fn is_nobody(&self) -> bool {
        self.model.is_none() && self.sessions == 0
    }
}

fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What there is while MPI is in use.
pub(crate) struct World {
    session: Session,
}

impl World {
    #[inline]
    pub(crate) fn node(&self) -> &Node {
        self.session.node()
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }
}

/// The open world.
///
/// # Errors
/// MPI is not initialised yet, or finalised.
#[inline]
pub(crate) fn world() -> Result<&'static World> {
    // SAFETY: made by `Box::into_raw` in `join`; taken away when nobody uses it any more, after which the
    // program may make no call that needs it.
    match unsafe { WORLD.load(Ordering::Acquire).as_ref() } {
        Some(world) => Ok(world),
        None => Err(absent()),
    }
}

#[cold]
fn absent() -> Error {
    Class::OTHER.error(match PHASE.load(Ordering::Acquire) {
        AFTER => "called after MPI_Finalize",
        _ => "called before MPI_Init, MPI_Init_thread or MPI_Session_init",
    })
}

/// Whether Init was called and has returned.
pub(crate) fn is_initialized() -> bool {
    PHASE.load(Ordering::Acquire) >= RUNNING
}

/// Whether MPI can be used: the world model or a session is initialised.
#[inline]
pub(crate) fn is_running() -> bool {
    !WORLD.load(Ordering::Acquire).is_null()
}

/// Whether Finalize was called and has returned.
pub(crate) fn is_finalized() -> bool {
    PHASE.load(Ordering::Acquire) == AFTER
}

/// The level of the world model, and the thread that initialised it.
///
/// # Errors
/// It is not initialised, or finalised.
pub(crate) fn model() -> Result<(ThreadLevel, ThreadId)> {
    users().model.ok_or_else(absent)
}

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
    crate::request::set_concurrent(level == ThreadLevel::Multiple || users.had_session);
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
    crate::request::set_concurrent(true);
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
    // The library's own, in the context that is nobody's.
    let all = Communicator::new(0, Arc::new(Members::new((0..size).collect::<Vec<u32>>())), None, me);
    crate::api::define(size, world.session().program());
    collective::agree(world, &all)?;
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
    let world = WORLD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if world.is_null() {
        return Ok(());
    }
    // SAFETY: made by `Box::into_raw` in `join`, and only one thread can swap it out.
    let world = unsafe { Box::from_raw(world) };
    world.session.close().map_err(from_session)
}

/// The session's words, with a class.
#[cold]
pub(crate) fn from_session(why: SessionError) -> Error {
    let class = match &why {
        SessionError::Truncated { .. } => Class::TRUNCATE,
        SessionError::PeerLost { .. } => Class::PROC_ABORTED,
        SessionError::NoSuchRank { .. } => Class::RANK,
        _ => Class::OTHER,
    };
    class.error(why.to_string())
}
