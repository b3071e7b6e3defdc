//! Begin and end.

use crate::{Abi, errors, give};
use nmad_mpi::api::{self, Numbers};
use nmad_mpi::constant::ThreadLevel;
use nmad_mpi::error::Result;
use nmad_mpi::handle::Comm;
use std::ffi::c_void;

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

/// The numbers in the words of errors are those that the program knows.
fn numbers<A: Abi>() -> Numbers {
    Numbers { rank: A::rank_out, tag: A::tag_out, class: errors::class_out::<A> }
}

/// The code is an exit code, not one of MPI's.
pub(crate) fn abort<A: Abi>(comm: Comm, code: i32) -> Result<()> {
    api::abort(comm, code)
}

pub(crate) fn pcontrol<A: Abi>(level: i32) -> Result<()> {
    api::pcontrol(level);
    Ok(())
}
