//! Generalized requests: the program does the work and says when it is done.

use super::Ended;
use crate::error::{Class, Error, Result};
use crate::status::Status;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the program answers when a generalized request ends; errors keep the class that it named.
pub struct Callbacks {
    /// Fills in the status.
    pub query: Box<dyn Fn(&mut Status) -> Class + Send + Sync>,
    /// The request is not needed any more.
    pub free: Box<dyn Fn() -> Class + Send + Sync>,
    /// The request shall be cancelled; told is whether it is complete.
    pub cancel: Box<dyn Fn(bool) -> Class + Send + Sync>,
}

/// A generalized request.
pub(crate) struct General {
    callbacks: Callbacks,
    complete: AtomicBool,
    /// The handle is freed, and known until it is complete: whoever completes it ends it.
    orphan: AtomicBool,
    freed: AtomicBool,
}

impl General {
    pub(crate) fn new(callbacks: Callbacks) -> General {
        let [complete, orphan, freed] = [false; 3].map(AtomicBool::new);
        General { callbacks, complete, orphan, freed }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// The program has done its work.
    pub(crate) fn complete(&self) {
        self.complete.store(true, Ordering::SeqCst);
    }

    /// How it ended.
    pub(crate) fn query(&self) -> Ended {
        let mut status = Status::EMPTY;
        match answer((self.callbacks.query)(&mut status), "query") {
            Ok(()) => Ended::well(status),
            Err(error) => Ended::badly(status, error),
        }
    }

    /// How it ended; then it is not needed any more.
    pub(crate) fn finish(&self) -> Ended {
        let ended = self.query();
        match self.free() {
            Err(error) if ended.error.is_none() => Ended::badly(ended.status, error),
            _ => ended,
        }
    }

    /// The program gives its handle away, but for saying that it has done its work.
    pub(crate) fn abandon(&self) {
        self.orphan.store(true, Ordering::SeqCst);
    }

    /// Ends it if it is given away and complete; none: it is not, or another thread ends it. Whoever makes it
    /// one of both asks afterwards, so that it ends in any order.
    pub(crate) fn bury(&self) -> Option<Result<()>> {
        let is_over = self.orphan.load(Ordering::SeqCst) && self.complete.load(Ordering::SeqCst);
        (is_over && !self.freed.swap(true, Ordering::AcqRel)).then(|| self.release())
    }

    pub(crate) fn cancel(&self) -> Result<()> {
        answer((self.callbacks.cancel)(self.is_complete()), "cancel")
    }

    fn free(&self) -> Result<()> {
        if self.freed.swap(true, Ordering::AcqRel) { Ok(()) } else { self.release() }
    }

    fn release(&self) -> Result<()> {
        answer((self.callbacks.free)(), "free")
    }
}

fn answer(class: Class, which: &str) -> Result<()> {
    if class == Class::SUCCESS {
        return Ok(());
    }
    Err(Error::new(class, format!("the {which} function of a generalized request failed")))
}
