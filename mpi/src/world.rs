//! The process as MPI sees it: from Init to Finalize, a session and what is known about the job.

use crate::constant::ThreadLevel;
use crate::error::{Class, Error, Result};
use newmadeleine::progress::Node;
use newmadeleine::{Session, SessionError};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::thread::ThreadId;

/// The world between Init and Finalize; null before and after.
static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());
static PHASE: AtomicU8 = AtomicU8::new(BEFORE);

const BEFORE: u8 = 0;
const OPENING: u8 = 1;
const RUNNING: u8 = 2;
const AFTER: u8 = 3;

/// What there is between Init and Finalize.
pub(crate) struct World {
    session: Session,
    level: ThreadLevel,
    /// The thread that initialised.
    main: ThreadId,
}

impl World {
    #[inline]
    pub(crate) fn node(&self) -> &Node {
        self.session.node()
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn level(&self) -> ThreadLevel {
        self.level
    }

    pub(crate) fn is_main(&self) -> bool {
        std::thread::current().id() == self.main
    }
}

/// The world.
///
/// # Errors
/// MPI is not initialised yet, or finalised.
#[inline]
pub(crate) fn world() -> Result<&'static World> {
    // SAFETY: made by `Box::into_raw` in `open`; taken away by Finalize, during and after which the program
    // may make no call that needs it.
    match unsafe { WORLD.load(Ordering::Acquire).as_ref() } {
        Some(world) => Ok(world),
        None => Err(absent()),
    }
}

#[cold]
fn absent() -> Error {
    Class::OTHER.error(match PHASE.load(Ordering::Acquire) {
        AFTER => "called after MPI_Finalize",
        _ => "called before MPI_Init or MPI_Init_thread",
    })
}

/// Whether Init was called and has returned.
pub(crate) fn is_initialized() -> bool {
    PHASE.load(Ordering::Acquire) >= RUNNING
}

/// Whether Init has returned, and Finalize not yet.
#[inline]
pub(crate) fn is_running() -> bool {
    PHASE.load(Ordering::Acquire) == RUNNING
}

/// Whether Finalize was called and has returned.
pub(crate) fn is_finalized() -> bool {
    PHASE.load(Ordering::Acquire) == AFTER
}

/// Opens the session.
///
/// # Errors
/// It is open or was closed already, or the job cannot be joined.
pub(crate) fn open(level: ThreadLevel) -> Result<&'static World> {
    if PHASE.compare_exchange(BEFORE, OPENING, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return Err(Class::OTHER.error("MPI was initialised before, which is possible once"));
    }
    let session = Session::open().map_err(|why| {
        PHASE.store(BEFORE, Ordering::Release);
        from_session(why)
    })?;
    let opened = Box::new(World { session, level, main: std::thread::current().id() });
    WORLD.store(Box::into_raw(opened), Ordering::Release);
    PHASE.store(RUNNING, Ordering::Release);
    world()
}

/// Closes the session.
///
/// # Errors
/// There is none, or its launcher is gone.
pub(crate) fn close() -> Result<()> {
    let world = WORLD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if world.is_null() {
        return Err(absent());
    }
    PHASE.store(AFTER, Ordering::Release);
    // SAFETY: made by `Box::into_raw` in `open`, and only one thread can swap it out.
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
