//! Messages that are built and taken apart piece by piece: which are under way, by name.

use crate::code::{Answer, Failure, MESSAGE, OK};
use crate::raw::Out;
use newmadeleine::engine::RequestId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages under way in one direction.
pub struct Table<M>(Mutex<Messages<M>>);

struct Messages<M> {
    named: HashMap<u64, Open<M>>,
    last: u64,
}

/// A message, and its pieces that it waits for at its end.
pub struct Open<M> {
    pub message: M,
    pub kept: Vec<RequestId>,
}

impl<M> Default for Table<M> {
    fn default() -> Self {
        Table(Mutex::new(Messages { named: HashMap::new(), last: 0 }))
    }
}

impl<M> Table<M> {
    fn lock(&self) -> MutexGuard<'_, Messages<M>> {
        // The call that panicked reported it; the table itself is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a new message; returns its name.
    pub fn begin(&self, message: M) -> u64 {
        let mut messages = self.lock();
        messages.last += 1;
        let name = messages.last;
        messages.named.insert(name, Open { message, kept: Vec::new() });
        name
    }

    /// Adds a piece; the caller receives its request, or the message keeps it.
    pub fn add(&self, name: u64, request: Out<u64>, submit: impl FnOnce(&mut M) -> RequestId) -> Answer {
        let mut messages = self.lock();
        let open = messages.named.get_mut(&name).ok_or_else(|| unknown(name))?;
        let piece = submit(&mut open.message);
        if request.is_null() {
            open.kept.push(piece);
        } else {
            request.set(piece.0);
        }
        Ok(OK)
    }

    /// Takes the message away.
    pub fn end(&self, name: u64) -> Result<Open<M>, Failure> {
        self.lock().named.remove(&name).ok_or_else(|| unknown(name))
    }
}

#[cold]
fn unknown(name: u64) -> Failure {
    Failure::new(MESSAGE, format!("message {name} was never begun, or is ended"))
}
