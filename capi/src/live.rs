//! Which sessions are open. A pointer is followed only if it is one of these, so that a stale or wrong one is
//! an error and not a crash.

use crate::code::{ARGUMENT, Failure, SESSION};
use crate::handle::Handle;
use crate::raw::{self, Out};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Sessions of one process at a time; a process that a launcher has started has one.
const MOST: usize = 64;

static LIVE: [AtomicPtr<Handle>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];

/// `nmad_session_t *`
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct SessionPointer(*mut Handle);

impl SessionPointer {
    /// The session, if it is open.
    #[inline]
    pub fn get<'a>(self) -> Result<&'a Handle, Failure> {
        if self.0.is_null() || !LIVE.iter().any(|place| place.load(Ordering::Acquire) == self.0) {
            return Err(self.unknown());
        }
        Ok(raw::alive(self.0))
    }

    /// Takes the session away from everybody.
    pub fn take(self) -> Result<Handle, Failure> {
        let take = |place: &AtomicPtr<Handle>| {
            place.compare_exchange(self.0, null_mut(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        if self.0.is_null() || !LIVE.iter().any(take) {
            return Err(self.unknown());
        }
        Ok(raw::take_back(self.0))
    }

    #[cold]
    fn unknown(self) -> Failure {
        match self.0.is_null() {
            true => Failure::new(ARGUMENT, "session is NULL"),
            false => Failure::new(SESSION, "no open session (is it closed already?)"),
        }
    }
}

/// Gives a session a pointer, and tells it.
pub fn keep(handle: Handle, session: Out<SessionPointer>) -> Result<(), Failure> {
    let pointer = raw::hand_out(handle);
    let free = |place: &AtomicPtr<Handle>| {
        place.compare_exchange(null_mut(), pointer, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if !LIVE.iter().any(free) {
        drop(raw::take_back(pointer));
        return Err(Failure::new(SESSION, format!("{MOST} sessions are open already; close one")));
    }
    session.set(SessionPointer(pointer));
    Ok(())
}
