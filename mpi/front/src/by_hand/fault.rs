//! Nonblocking agreement, which writes its answer where it has read the flag.

use crate::{Abi, give, take};
use nmad_mpi::api;
use nmad_mpi::error::Result;
use nmad_mpi::handle::Comm;

pub(crate) fn mpix_comm_iagree<A: Abi>(comm: Comm, flag: *mut i32, request: *mut A::Handle) -> Result<()> {
    let flags = take::read("flag", flag)?;
    give::value(request, give::request::<A>(api::mpix_comm_iagree(comm, flags, flag)?));
    Ok(())
}
