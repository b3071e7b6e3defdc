//! How calls end: error codes, and error handlers.

use crate::Abi;
use crate::take;
use nmad_mpi::api::{self, Code, Object};
use nmad_mpi::error::{Class, Error, Result};

/// Numbers below it are classes, and a code of the standard's is `class + CLASSES * detail`.
const CLASSES: i32 = 128;

/// What a number is that is no class and no code.
pub(crate) const NO_CLASS: Class = Class(-1);

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

/// The answer of a function that there is not yet.
#[cold]
pub(crate) fn unsupported<A: Abi>(name: &str, owner: Owner<A::Handle>) -> i32 {
    let text = "not supported yet; `nmad info --mpi` lists what is not";
    fail::<A>(name, owner, &Class::UNSUPPORTED_OPERATION.error(text))
}

/// The number of a code.
pub(crate) fn code_out<A: Abi>(code: Code) -> i32 {
    match A::class_out(code.class) {
        Some(class) => class + CLASSES * i32::from(code.detail),
        None => class_out::<A>(code.class),
    }
}

/// The code of a number.
pub(crate) fn code_in<A: Abi>(number: i32) -> Code {
    let plain = |class| Code { class, detail: 0 };
    if number < 0 || number > A::LAST_CODE {
        return plain(class_in::<A>(number));
    }
    if let Some(class) = A::class_in(number) {
        return plain(Class(class));
    }
    match A::class_in(number % CLASSES) {
        Some(class) => Code { class: Class(class), detail: u8::try_from(number / CLASSES).unwrap_or(0) },
        None => plain(NO_CLASS),
    }
}

/// The number of a class, or of a code that the program has added.
pub(crate) fn class_out<A: Abi>(class: Class) -> i32 {
    match A::class_out(class) {
        Some(number) => number,
        None => class.0.wrapping_sub(Class::LAST.0).wrapping_add(A::LAST_CODE),
    }
}

/// The class or added code of a number; [`NO_CLASS`] if it is neither.
pub(crate) fn class_in<A: Abi>(number: i32) -> Class {
    match A::class_in(number) {
        Some(class) => Class(class),
        None if number > A::LAST_CODE => Class(number - A::LAST_CODE + Class::LAST.0),
        None => NO_CLASS,
    }
}
