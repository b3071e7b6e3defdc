//! An open session, shared by the object of Python and by its requests, and the list of those that are open.

use crate::buffer::Memory;
use crate::error::Failure;
use newmadeleine::{RequestId, Session};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Sessions that may be open when Python ends.
static OPEN: Mutex<Vec<Weak<Open>>> = Mutex::new(Vec::new());

/// A session and the memory that it may still use.
pub struct Open {
    // First, so that nothing writes to what follows any more.
    session: Session,
    is_closed: AtomicBool,
    /// Requests whose objects are gone, and what they use.
    left: Mutex<Vec<(RequestId, Memory)>>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Open {
    pub fn new(session: Session) -> Arc<Open> {
        let open = Open { session, is_closed: AtomicBool::new(false), left: Mutex::default() };
        let open = Arc::new(open);
        let mut list = lock(&OPEN);
        list.retain(|other| other.strong_count() > 0);
        list.push(Arc::downgrade(&open));
        open
    }

    /// The session, unless it is closed.
    pub fn session(&self) -> Result<&Session, Failure> {
        if self.is_closed.load(Ordering::Acquire) { Err(Failure::closed()) } else { Ok(&self.session) }
    }

    /// Takes over a request that nobody will wait for. What others of them used and no longer do is released.
    pub fn leave(&self, request: RequestId, memory: Memory) {
        let node = self.session.node();
        let mut left = lock(&self.left);
        left.push((request, memory));
        left.retain(|(request, _)| match node.has_ended(*request) {
            // Told, so that the engine forgets it.
            Ok(true) => node.wait_any_within(&[*request], None).is_err(),
            Ok(false) => true,
            Err(_) => false,
        });
    }

    /// Leaves the job. A message that was not received by then is lost.
    pub fn close(&self) -> Result<(), Failure> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        Ok(self.session.leave()?)
    }

    pub fn abort(&self, code: i32, why: &str) -> ! {
        self.session.abort(code, why)
    }
}

/// Closes what the program has left open; called when Python ends.
#[pyfunction]
pub fn close_all(py: Python<'_>) {
    let list = std::mem::take(&mut *lock(&OPEN));
    for open in list.iter().filter_map(Weak::upgrade) {
        // Nobody is left to be told.
        let _ = py.detach(|| open.close());
    }
}
