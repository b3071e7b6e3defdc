//! What the binary interface is.

use crate::{Abi, give};
use nmad_mpi::api;
use nmad_mpi::error::Result;

pub(crate) fn abi_get_version<A: Abi>(major: *mut i32, minor: *mut i32) -> Result<()> {
    give::value(major, A::VERSION.0);
    give::value(minor, A::VERSION.1);
    Ok(())
}

pub(crate) fn abi_get_info<A: Abi>(info: *mut A::Handle) -> Result<()> {
    let made = api::info_create();
    for (key, size) in [("mpi_aint_size", 8), ("mpi_count_size", 8), ("mpi_offset_size", 8)] {
        api::info_set(made, key, &size.to_string())?;
    }
    give::value(info, give::info::<A>(made));
    Ok(())
}
