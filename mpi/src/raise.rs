//! Whose error handler hears of an error.

use crate::comm::Named;
use crate::errhandler::{Handler, call, fatal, initial, keep_words, lookup};
use crate::error::{Class, Code, Error};
use crate::file;
use crate::handle::{Comm, Errhandler, File, Group, Session, Win};
use crate::objects;
use crate::session;
use crate::window;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the program has set the handlers of `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
static WAS_SET: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// The program has set the handler of a communicator.
pub(crate) fn was_set(comm: Comm) {
    if let Some(place) = [Comm::WORLD, Comm::SELF].iter().position(|known| *known == comm) {
        WAS_SET[place].store(true, Ordering::Relaxed);
    }
}

/// The communicator whose handler hears of errors that belong to no object: `MPI_COMM_SELF` (MPI 4.0, section
/// 9.3). Before MPI 4 it was `MPI_COMM_WORLD`, which is asked if the program has set its handler and not the
/// other's.
fn of_nothing() -> Comm {
    match WAS_SET.each_ref().map(|set| set.load(Ordering::Relaxed)) {
        [true, false] => Comm::WORLD,
        _ => Comm::SELF,
    }
}

/// What a call is about: whose handler hears of its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// Nothing in particular.
    None,
    /// A communicator.
    Comm(Comm),
    /// A session.
    Session(Session),
    /// A group, which has the handler of the session that it was made from.
    Group(Group),
    /// A window.
    Win(Win),
    /// A file; the null handle: none yet.
    File(File),
    /// The object that the call makes, with this handler.
    New(Errhandler),
}

/// The handler of an object, and the object's handle for it.
fn handler_of(object: Object) -> Option<(Arc<Handler>, u32)> {
    match object {
        Object::None => None,
        Object::Comm(comm) => Named::of(comm).ok().map(|named| (named.comm.errhandler(), comm.0)),
        Object::Session(handle) => session::lookup(handle).ok().map(|found| (found.errhandler(), handle.0)),
        Object::Win(handle) => window::lookup(handle).ok().map(|found| (found.errhandler(), handle.0)),
        Object::File(handle) => Some((file::errhandler_of(handle), handle.0)),
        Object::Group(group) => {
            let session = objects::group(group).ok()?.session()?.clone();
            Some((session.errhandler(), session.handle().0))
        }
        Object::New(handle) => lookup(handle).ok().map(|handler| (handler, 0)),
    }
}

/// An error was found in a call on an object: runs its handler, or that of the communicator to which the
/// error belongs.
pub(crate) fn raise(object: Object, error: &Error) -> Code {
    // Codes that programs add have words of their own.
    let code = match error.class() {
        class if class > Class::LAST => Code { class, detail: 0 },
        _ => keep_words(error),
    };
    if let Some(owner) = error.owner() {
        return owner.answer(code);
    }
    let before = || initial().unwrap_or_else(|_| fatal());
    let known = handler_of(object).or_else(|| handler_of(Object::Comm(of_nothing())));
    let (handler, object) = known.unwrap_or_else(|| (before(), Comm::SELF.0));
    call(&handler, object, code)
}
