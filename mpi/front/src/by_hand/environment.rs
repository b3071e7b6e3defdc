//! Begin and end.

use crate::{Abi, codes, give, take};
use nmad_mpi::api::{self, Numbers};
use nmad_mpi::constant::ThreadLevel;
use nmad_mpi::error::{Class, Result};
use nmad_mpi::handle::{Comm, Errhandler, Info, Session};
use std::ffi::{c_char, c_void};

pub(crate) fn init<A: Abi>(_argc: *mut c_void, _argv: *mut c_void) -> Result<()> {
    api::show_numbers(numbers::<A>());
    api::init()
}

pub(crate) fn init_thread<A: Abi>(
    _argc: *mut c_void,
    _argv: *mut c_void,
    required: ThreadLevel,
    provided: *mut i32,
) -> Result<()> {
    api::show_numbers(numbers::<A>());
    give::value(provided, give::thread::<A>(api::init_thread(required)?));
    Ok(())
}

pub(crate) fn session_init<A: Abi>(
    info: Info,
    errhandler: Errhandler,
    session: *mut A::Handle,
) -> Result<()> {
    api::show_numbers(numbers::<A>());
    let made = api::session_init(info, errhandler);
    give::value(session, give::session::<A>(*made.as_ref().unwrap_or(&Session::NULL)));
    made.map(drop)
}

/// The length counts the end of the string; if it is zero, the call returns the length that is needed.
pub(crate) fn session_get_nth_pset<A: Abi>(
    session: Session,
    info: Info,
    n: i32,
    len: &mut i32,
    name: *mut c_char,
) -> Result<()> {
    let found = api::session_get_nth_pset(session, info, n)?;
    let room = usize::try_from(*len)
        .map_err(|_| Class::ARG.error(format!("argument pset_len is {len}: it must not be negative")))?;
    if room == 0 {
        *len = found.len() as i32 + 1;
        return Ok(());
    }
    take::place("pset_name", name)?;
    give::string(name, room, &found, std::ptr::null_mut());
    Ok(())
}

/// The numbers in the words of errors are those that the program knows.
fn numbers<A: Abi>() -> Numbers {
    Numbers { rank: A::rank_out, tag: A::tag_out, class: codes::class_out::<A> }
}

/// The code is an exit code, not one of MPI's.
pub(crate) fn abort<A: Abi>(comm: Comm, code: i32) -> Result<()> {
    api::abort(comm, code)
}

pub(crate) fn pcontrol<A: Abi>(level: i32) -> Result<()> {
    api::pcontrol(level);
    Ok(())
}
