//! A session itself, which groups and communicators made from it keep.

use crate::errhandler::Handler;
use crate::handle::Session;
use crate::info::Infos;
use crate::point::Attached;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A session.
pub(crate) struct SessionObject {
    /// Zero when it is finalised; groups and communicators may still know it.
    handle: AtomicU32,
    errhandler: Mutex<Arc<Handler>>,
    info: Infos,
    /// For buffered sends on its communicators.
    buffer: Attached,
}

impl SessionObject {
    /// One that has no handle yet.
    pub(super) fn new(handler: Arc<Handler>, info: Infos) -> SessionObject {
        let (handle, errhandler) = (AtomicU32::new(0), Mutex::new(handler));
        SessionObject { handle, errhandler, info, buffer: Attached::none() }
    }

    pub(crate) fn errhandler(&self) -> Arc<Handler> {
        self.place().clone()
    }

    pub(super) fn set_errhandler(&self, handler: Arc<Handler>) {
        *self.place() = handler;
    }

    fn place(&self) -> MutexGuard<'_, Arc<Handler>> {
        self.errhandler.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn handle(&self) -> Session {
        Session(self.handle.load(Ordering::Relaxed))
    }

    /// It has this handle from now on.
    pub(super) fn set_handle(&self, handle: u32) {
        self.handle.store(handle, Ordering::Relaxed);
    }

    pub(crate) fn info(&self) -> &Infos {
        &self.info
    }

    pub(crate) fn buffer(&self) -> &Attached {
        &self.buffer
    }
}

impl fmt::Debug for SessionObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle().fmt(f)
    }
}
