//! Error handlers and generalized requests: the core calls functions of the program.

use super::{Word, function};
use crate::{Abi, codes, give};
use nmad_mpi::api::Callbacks;
use nmad_mpi::api::{self, Code};
use nmad_mpi::error::{Class, Result};
use nmad_mpi::handle::{Comm, File, Session, Win};
use std::ffi::c_void;

fn null(what: &str) -> nmad_mpi::error::Error {
    Class::ARG.error(format!("argument {what} is NULL: a function is needed"))
}

/// An error handler of the program's.
type Handler<H> = unsafe extern "C" fn(*mut H, *mut i32, ...);

macro_rules! handlers {
    ($($name:ident, $argument:literal, $object:ident, $handle:ident, $give:ident;)*) => {$(
        pub(crate) fn $name<A: Abi>(called: *const c_void, errhandler: *mut A::Handle) -> Result<()> {
            // SAFETY: the program passes an error handler for this kind of object.
            let called: Handler<A::$handle> = unsafe { function(called) }.ok_or_else(|| null($argument))?;
            let handler = move |object, code: Code| {
                let (mut object, mut code) = (give::$give::<A>($object(object)), codes::code_out::<A>(code));
                // SAFETY: both places live for the call.
                unsafe { called(&mut object, &mut code) }
            };
            let made = api::create_errhandler(Box::new(handler));
            give::value(errhandler, give::errhandler::<A>(made));
            Ok(())
        }
    )*};
}

handlers! {
    comm_create_errhandler, "comm_errhandler_fn", Comm, Handle, comm;
    session_create_errhandler, "session_errhandler_fn", Session, Handle, session;
    win_create_errhandler, "win_errhandler_fn", Win, Handle, win;
    file_create_errhandler, "file_errhandler_fn", File, File, file;
}

type Query<S> = unsafe extern "C" fn(*mut c_void, *mut S) -> i32;
type Free = unsafe extern "C" fn(*mut c_void) -> i32;
type Cancel = unsafe extern "C" fn(*mut c_void, i32) -> i32;

pub(crate) fn grequest_start<A: Abi>(
    query: *const c_void,
    free: *const c_void,
    cancel: *const c_void,
    state: usize,
    request: *mut A::Handle,
) -> Result<()> {
    // SAFETY: the program passes functions of these types.
    let (query, free, cancel) = unsafe { (function(query), function(free), function(cancel)) };
    let query: Query<A::Status> = query.ok_or_else(|| null("query_fn"))?;
    let free: Free = free.ok_or_else(|| null("free_fn"))?;
    let cancel: Cancel = cancel.ok_or_else(|| null("cancel_fn"))?;
    let state = Word(state);
    let class = |code: i32| codes::code_in::<A>(code).class;
    let callbacks = Callbacks {
        query: Box::new(move |status| {
            let mut own = crate::abi::blank::<A>();
            A::status_out(&mut own, status);
            // SAFETY: the status lives for the call.
            let code = unsafe { query(state.get(), &mut own) };
            *status = A::status_in(&own);
            class(code)
        }),
        // SAFETY: the program's function, with its own state.
        free: Box::new(move || class(unsafe { free(state.get()) })),
        // SAFETY: the program's function, with its own state.
        cancel: Box::new(move |complete| class(unsafe { cancel(state.get(), complete.into()) })),
    };
    give::value(request, give::request::<A>(api::grequest_start(callbacks)?));
    Ok(())
}
