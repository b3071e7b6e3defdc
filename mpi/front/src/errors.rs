//! How calls end: error codes, and error handlers.

use crate::Abi;
use crate::codes::{class_out, code_out};
use crate::take;
use nmad_mpi::api::{self, Object};
use nmad_mpi::error::{Class, Error, Result};
use nmad_mpi::handle::File;

/// Checks that MPI is initialised and not finalised.
#[inline]
pub(crate) fn enter() -> Result<()> {
    if api::is_running() { Ok(()) } else { Err(not_now()) }
}

#[cold]
fn not_now() -> Error {
    Class::OTHER.error(match api::finalized() {
        true => "MPI is finalized: nothing can be done any more",
        false => "MPI is not initialized: call MPI_Init first",
    })
}

/// The object of a call, whose error handler is asked if it fails.
pub(crate) enum Owner<H> {
    /// The call has none, or it is not known.
    None,
    Comm(H),
    /// Its communicator's is.
    Request(H),
    /// Its communicator's is.
    Message(H),
    Session(H),
    Win(H),
    File(H),
    /// The null handle of files, whose handler hears of what makes files.
    NoFile,
    /// That of the session that it was made from.
    Group(H),
    /// The handler itself: what the call makes would have it.
    Errhandler(H),
}

impl<H> Owner<H> {
    fn object<A: Abi<Handle = H>>(self) -> Object {
        let comm = match self {
            Owner::None => None,
            Owner::Session(session) => {
                return take::session::<A>("session", session).map_or(Object::None, Object::Session);
            }
            Owner::Win(win) => return take::win::<A>("win", win).map_or(Object::None, Object::Win),
            Owner::File(file) => {
                return Object::File(take::file::<A>("fh", A::file_out(file)).unwrap_or(File::NULL));
            }
            Owner::NoFile => return Object::File(File::NULL),
            Owner::Group(group) => {
                return take::group::<A>("group", group).map_or(Object::None, Object::Group);
            }
            Owner::Errhandler(handler) => {
                return take::errhandler::<A>("errhandler", handler).map_or(Object::None, Object::New);
            }
            Owner::Comm(comm) => take::comm::<A>("comm", comm).ok(),
            Owner::Request(request) => {
                take::request::<A>("request", request).ok().and_then(api::request_comm)
            }
            Owner::Message(message) => {
                take::message::<A>("message", message).ok().and_then(api::message_comm)
            }
        };
        comm.map_or(Object::None, Object::Comm)
    }
}

/// The error code of a call that failed. The error handler of its object is asked: that of the request's
/// communicator where a request failed.
#[cold]
#[inline(never)]
pub(crate) fn fail<A: Abi>(name: &str, owner: Owner<A::Handle>, error: &Error) -> i32 {
    code_out::<A>(api::raise(owner.object::<A>(), &error.clone().found_in(name)))
}

/// The error code of a call of the tools interface that failed: the interface has classes of its own.
#[cold]
pub(crate) fn tool_failed<A: Abi>(error: &Error) -> i32 {
    let own = Class::T_CANNOT_INIT..=Class::T_PVAR_NO_ATOMIC;
    let class = if own.contains(&error.class()) { error.class() } else { Class::T_INVALID };
    class_out::<A>(class)
}
