//! The environment: versions, names, time, memory, the end of the job.

use crate::error::{Class, Result};
use crate::handle::{Comm, Info};
use crate::hardware;
use crate::info::{self, Infos};
use crate::memory;
use crate::world::world;
use newmadeleine::{host_name, tell_user};
use std::ffi::c_void;
use std::sync::LazyLock;
use std::time::Instant;

/// `MPI_Get_version`: version and subversion of the standard.
pub fn get_version() -> (i32, i32) {
    (5, 0)
}

/// `MPI_Get_library_version`
pub fn get_library_version() -> String {
    format!("MAD-MPI {} on NewMadeleine", env!("CARGO_PKG_VERSION"))
}

/// `MPI_Get_processor_name`
pub fn get_processor_name() -> String {
    host_name()
}

/// Where time begins.
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// `MPI_Wtime`: seconds since the first call.
pub fn wtime() -> f64 {
    BEGIN.elapsed().as_secs_f64()
}

/// `MPI_Wtick`: the clock counts nanoseconds.
pub fn wtick() -> f64 {
    1e-9
}

/// `MPI_Abort`: ends the job with this exit code; does not return. Which communicator is named makes no
/// difference: all processes end, which the standard allows.
pub fn abort(_comm: Comm, errorcode: i32) -> ! {
    let why = match world() {
        Ok(world) => format!("rank {} called MPI_Abort with code {errorcode}", world.session().rank()),
        Err(_) => format!("MPI_Abort was called with code {errorcode}"),
    };
    match world() {
        Ok(world) => world.session().abort(errorcode, &why),
        Err(_) => {
            tell_user(why);
            std::process::exit(errorcode)
        }
    }
}

/// `MPI_Alloc_mem`
///
/// # Errors
/// A negative size, there is no such info object or its alignment is none, or no memory is left.
pub fn alloc_mem(size: i64, info: Info) -> Result<*mut c_void> {
    let Ok(len) = usize::try_from(size) else {
        return Err(Class::ARG.error(format!("{size} B cannot be allocated")));
    };
    let none = || Class::NO_MEM.error(format!("the system has no {size} B of memory left"));
    memory::allocate(len, info::optional(info)?.map_or(Ok(1), |info| info.alignment())?).ok_or_else(none)
}

/// `MPI_Free_mem`
///
/// # Errors
/// The address was not given by [`alloc_mem`], or is freed.
pub fn free_mem(base: *mut c_void) -> Result<()> {
    if base.is_null() || memory::release(base) {
        return Ok(());
    }
    Err(Class::BASE.error(format!("{base:p} was not given by MPI_Alloc_mem, or is freed")))
}

/// `MPI_Get_hw_resource_info`: which resources this process is bound to.
///
/// # Errors
/// None.
pub fn get_hw_resource_info() -> Result<Info> {
    let infos = Infos::default();
    for unit in hardware::units() {
        infos.set(unit.kind.name(), if unit.number.is_some() { "true" } else { "false" });
    }
    Ok(info::insert(infos))
}

/// `MPI_Pcontrol`: there is no profiler inside.
pub fn pcontrol(_level: i32) {}
