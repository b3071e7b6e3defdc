//! The tools interface (MPI 5.0, chapter 15), free of any binary interface: what there is to set and to read,
//! under which names. `control` has the settings, `performance` what rails and peers count, `session` the
//! handles through which they are read, `event` what programs are called for, `category` how all of these are
//! grouped, `enumeration` names for numbers.
//!
//! Nothing here is on the path of a message: variables are computed when they are read, from what the engine
//! keeps for itself.

pub(crate) mod category;
#[allow(unsafe_code)]
pub(crate) mod control;
pub(crate) mod enumeration;
pub(crate) mod event;
pub(crate) mod performance;
pub(crate) mod queue;
pub(crate) mod session;

use crate::error::{Class, Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often the interface was initialised and not finalised.
static USERS: AtomicU32 = AtomicU32::new(0);

/// The audience of a variable, which the standard calls its verbosity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Verbosity {
    /// Every user.
    UserBasic = 9,
    /// Every user, details.
    UserDetail = 10,
    /// Those who tune programs.
    TunerBasic = 17,
    /// Those who tune programs, details.
    TunerDetail = 18,
}

/// To which objects a variable is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Binding {
    /// None.
    Nothing = 1,
    /// A communicator.
    Comm = 2,
}

/// Begins to use the interface.
pub(crate) fn open() {
    USERS.fetch_add(1, Ordering::Relaxed);
}

/// Ends it.
///
/// # Errors
/// It is not in use.
pub(crate) fn close() -> Result<()> {
    let less = |users: u32| users.checked_sub(1);
    let before = USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).map_err(|_| absent())?;
    if before == 1 {
        session::forget_all();
        event::forget_all();
    }
    Ok(())
}

/// Checks that it is in use. Functions for events that wait for a call of the program are called now.
///
/// # Errors
/// It is not.
pub(crate) fn enter() -> Result<()> {
    if USERS.load(Ordering::Relaxed) == 0 {
        return Err(absent());
    }
    event::tell_waiting();
    Ok(())
}

fn absent() -> Error {
    Class::T_NOT_INITIALIZED.error("call MPI_T_init_thread first")
}

/// The entry of an index.
///
/// # Errors
/// There is none.
pub(crate) fn entry<'a, T>(what: &str, list: &'a [T], index: i32) -> Result<&'a T> {
    let found = usize::try_from(index).ok().and_then(|index| list.get(index));
    found.ok_or_else(|| {
        Class::T_INVALID_INDEX.error(format!("there is no {what} {index}: there are {}", list.len()))
    })
}

/// The index of a name.
///
/// # Errors
/// There is none.
pub(crate) fn index_of<'a>(what: &str, mut names: impl Iterator<Item = &'a str>, name: &str) -> Result<i32> {
    let unknown = || Class::T_INVALID_NAME.error(format!("there is no {what} '{name}'"));
    names.position(|each| each == name).map(|index| index as i32).ok_or_else(unknown)
}
