//! Beginning and end.

use crate::comm::{COMMS, Communicator, Members, Named, create};
use crate::constant::ThreadLevel;
use crate::errhandler;
use crate::error::Result;
use crate::fault;
use crate::file;
use crate::handle::Comm;
use crate::health;
use crate::join;
use crate::point::buffered::process;
use crate::point::send;
use crate::request::wait::wait_for_orphans;
use crate::world;
use std::sync::Arc;

/// `MPI_Init`
///
/// # Errors
/// The job cannot be joined, or this is not the first call.
pub fn init() -> Result<()> {
    init_thread(ThreadLevel::Single).map(drop)
}

/// `MPI_Init_thread`: the level that is provided.
///
/// # Errors
/// As [`init`].
pub fn init_thread(required: ThreadLevel) -> Result<ThreadLevel> {
    let handler = errhandler::initial()?;
    let world = join::open(required)?;
    let (me, size) = (world.session().rank(), world.session().size());
    let all = Arc::new(Members::first(size));
    let alone = Arc::new(Members::new([me]));
    let predefined = [(Comm::WORLD, all, "MPI_COMM_WORLD"), (Comm::SELF, alone, "MPI_COMM_SELF")];
    for (handle, members, name) in predefined {
        // The numbers of their contexts are those of their handles.
        let comm = Communicator::new(handle.0, members, None, me);
        *comm.name() = name.into();
        comm.set_errhandler(handler.clone());
        create::insert_as(handle, Arc::new(comm))?;
    }
    crate::comm::foreign::port::join_parent(world)?;
    Ok(required)
}

/// `MPI_Initialized`
pub fn initialized() -> bool {
    world::is_initialized()
}

/// Whether other functions may be called: between `MPI_Init` and `MPI_Finalize`, or with a session.
#[inline]
pub fn is_running() -> bool {
    world::is_running()
}

/// `MPI_Finalize`
///
/// # Errors
/// MPI is not initialised, or the launcher is gone.
pub fn finalize() -> Result<()> {
    let world = world::world()?;
    // First of all, as the standard has it (MPI 5.0, 11.4.1).
    for comm in [Comm::SELF, Comm::WORLD] {
        let named = Named::of(comm)?;
        named.comm.attributes().delete_all(comm.0).map_err(|error| error.on(Some(named.clone())))?;
    }
    file::release();
    wait_for_orphans(world);
    // Without a buffer there is nothing to wait for.
    let _ = process().flush();
    send::wait_for_early(world);
    match health::is_on() {
        true => fault::calls::finalize_barrier(Comm::WORLD)?,
        false => create::meet(Comm::WORLD)?,
    }
    COMMS.remove(Comm::WORLD.0);
    COMMS.remove(Comm::SELF.0);
    join::close()
}

/// `MPI_Finalized`
pub fn finalized() -> bool {
    world::is_finalized()
}

/// `MPI_Query_thread`
///
/// # Errors
/// MPI is not initialised.
pub fn query_thread() -> Result<ThreadLevel> {
    Ok(world::model()?.0)
}

/// `MPI_Is_thread_main`
///
/// # Errors
/// MPI is not initialised.
pub fn is_thread_main() -> Result<bool> {
    Ok(world::model()?.1 == std::thread::current().id())
}
