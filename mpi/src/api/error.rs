//! Errors: handlers, classes, codes and texts.

use crate::codes;
use crate::comm::lookup;
use crate::errhandler;
pub use crate::errhandler::Callback;
pub use crate::error::Code;
use crate::error::{Class, Error, Result};
use crate::handle::{Comm, Errhandler, Message, Request};
use crate::point::probe::comm_of;
use crate::raise;
pub use crate::raise::Object;
use crate::request::SLOTS;
use crate::shown;
pub use crate::shown::Numbers;

/// An error was found in a call on an object: runs its error handler, or that of the communicator to which
/// the error belongs. What the front gives back if the handler returns.
#[cold]
pub fn raise(object: Object, error: &Error) -> Code {
    raise::raise(object, error)
}

/// The communicator of a request, for the error handler of a call that names the request; none if it is not
/// known.
#[cold]
pub fn request_comm(request: Request) -> Option<Comm> {
    SLOTS.with(request, |state| state.comm()).flatten()
}

/// The same of a message that a matching probe has found.
#[cold]
pub fn message_comm(message: Message) -> Option<Comm> {
    comm_of(message)
}

/// Which numbers the words of errors have, where those of the program's interface are not the core's.
pub fn show_numbers(numbers: Numbers) {
    shown::set(numbers);
}

/// `MPI_Comm_create_errhandler`, `MPI_Session_create_errhandler`
pub fn create_errhandler(callback: Callback) -> Errhandler {
    errhandler::create(callback)
}

/// `MPI_Comm_set_errhandler`
///
/// # Errors
/// There is no such communicator or error handler.
pub fn comm_set_errhandler(comm: Comm, errhandler: Errhandler) -> Result<()> {
    let handler = errhandler::lookup(errhandler)?;
    lookup(comm)?.set_errhandler(handler);
    raise::was_set(comm);
    Ok(())
}

/// `MPI_Comm_get_errhandler`
///
/// # Errors
/// There is no such communicator.
pub fn comm_get_errhandler(comm: Comm) -> Result<Errhandler> {
    Ok(errhandler::give_out(&lookup(comm)?.errhandler()))
}

/// `MPI_Comm_call_errhandler`
///
/// # Errors
/// There is no such communicator.
pub fn comm_call_errhandler(comm: Comm, code: Code) -> Result<()> {
    let handler = lookup(comm)?.errhandler();
    errhandler::call(&handler, comm.0, code);
    Ok(())
}

/// `MPI_Errhandler_free`
///
/// # Errors
/// There is no such error handler.
pub fn errhandler_free(errhandler: &mut Errhandler) -> Result<()> {
    errhandler::free(errhandler)
}

/// `MPI_Error_class`
///
/// # Errors
/// There is no such class or code.
pub fn error_class(code: Code) -> Result<Class> {
    if code.class.name().is_some() { Ok(code.class) } else { codes::class_of(code.class) }
}

/// `MPI_Error_string`
///
/// # Errors
/// There is no such class or code.
pub fn error_string(code: Code) -> Result<String> {
    if let Some(words) = errhandler::text_of(code) {
        return Ok(words);
    }
    match (code.class.name(), code.class.meaning()) {
        (Some(name), Some(meaning)) => Ok(format!("{name}: {meaning}")),
        _ => codes::text(code.class),
    }
}

/// `MPI_Add_error_class`
pub fn add_error_class() -> Class {
    codes::add_class()
}

/// `MPI_Add_error_code`
///
/// # Errors
/// There is no such class.
pub fn add_error_code(class: Class) -> Result<Class> {
    codes::add_code(class)
}

/// `MPI_Add_error_string`
///
/// # Errors
/// The program has added no such class or code.
pub fn add_error_string(code: Class, text: &str) -> Result<()> {
    codes::set_text(code, Some(text))
}

/// `MPI_Remove_error_class`
///
/// # Errors
/// The program has added no such class, or it has codes.
pub fn remove_error_class(class: Class) -> Result<()> {
    codes::remove_class(class)
}

/// `MPI_Remove_error_code`
///
/// # Errors
/// The program has added no such code.
pub fn remove_error_code(code: Class) -> Result<()> {
    codes::remove_code(code)
}

/// `MPI_Remove_error_string`
///
/// # Errors
/// The program has added no such class or code.
pub fn remove_error_string(code: Class) -> Result<()> {
    codes::set_text(code, None)
}
