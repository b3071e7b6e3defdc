//! The process as MPI sees it: a session of the engine's, which is open while the program uses MPI by one of
//! the two ways of the standard: the *world model* (from Init to Finalize, once) or *sessions* of MPI (as
//! often as it likes).

use crate::constant::ThreadLevel;
use crate::error::{Class, Error, Result};
use crate::health::class_of_loss;
use newmadeleine::progress::Node;
use newmadeleine::{Session, SessionError};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::ThreadId;

/// The open world; null before and after.
pub(crate) static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());
/// Of the world model.
pub(crate) static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
pub(crate) static USERS: Mutex<Users> = Mutex::new(Users::new());

pub(crate) const BEFORE: u8 = 0;
pub(crate) const OPENING: u8 = 1;
pub(crate) const RUNNING: u8 = 2;
pub(crate) const AFTER: u8 = 3;

/// Who uses what is open.
pub(crate) struct Users {
    /// The level of the world model and the thread that initialised, until it is finalised.
    pub(crate) model: Option<(ThreadLevel, ThreadId)>,
    pub(crate) sessions: usize,
    /// Then it stays open until the process ends: there may be another session.
    pub(crate) had_session: bool,
    pub(crate) is_closed: bool,
}

impl Users {
    const fn new() -> Users {
        Users { model: None, sessions: 0, had_session: false, is_closed: false }
    }

    pub(crate) fn is_nobody(&self) -> bool {
        self.model.is_none() && self.sessions == 0
    }
}

pub(crate) fn users() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What there is while MPI is in use.
pub(crate) struct World {
    pub(crate) session: Session,
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
    // SAFETY: made with `Box::into_raw` in `join.rs`; taken away when nobody uses it any more, after which
    // the program may make no call that needs it.
    match unsafe { WORLD.load(Ordering::Acquire).as_ref() } {
        Some(world) => Ok(world),
        None => Err(absent()),
    }
}

#[cold]
pub(crate) fn absent() -> Error {
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

/// The session's words, with a class.
#[cold]
pub(crate) fn from_session(why: SessionError) -> Error {
    let class = match &why {
        SessionError::Truncated { .. } => Class::TRUNCATE,
        SessionError::PeerLost { .. } => class_of_loss(),
        SessionError::NoSuchRank { .. } => Class::RANK,
        _ => Class::OTHER,
    };
    class.error(why.to_string())
}
