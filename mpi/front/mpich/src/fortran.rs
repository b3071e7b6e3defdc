//! Statuses as Fortran has them: five integers, in both of its interfaces. And questions about accelerators.
#![allow(missing_docs, non_upper_case_globals, non_snake_case, clippy::missing_safety_doc)]

use super::CStatus;
use super::symbols::Mark;

// What Fortran passes to ignore a status; there is no Fortran here that could.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: Mark = Mark::NONE;
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: Mark = Mark::NONE;
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: Mark = Mark::NONE;
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: Mark = Mark::NONE;

macro_rules! copies {
    ($($name:ident $profiled:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(from: *const CStatus, to: *mut CStatus) -> i32 {
            // SAFETY: the program passes two statuses.
            unsafe { to.write_unaligned(from.read_unaligned()) }
            0
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $profiled(from: *const CStatus, to: *mut CStatus) -> i32 {
            // SAFETY: the program passes two statuses.
            unsafe { to.write_unaligned(from.read_unaligned()) }
            0
        }
    )*};
}

copies! {
    MPI_Status_c2f PMPI_Status_c2f
    MPI_Status_f2c PMPI_Status_f2c
    MPI_Status_c2f08 PMPI_Status_c2f08
    MPI_Status_f082c PMPI_Status_f082c
    MPI_Status_f2f08 PMPI_Status_f2f08
    MPI_Status_f082f PMPI_Status_f082f
}

/// Whether messages may lie in the memory of such an accelerator: of none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIX_GPU_query_support(_kind: i32, is_supported: *mut i32) -> i32 {
    // SAFETY: the program passes a place for the answer.
    unsafe { is_supported.write(0) }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn MPIX_Query_cuda_support() -> i32 {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn MPIX_Query_hip_support() -> i32 {
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn MPIX_Query_ze_support() -> i32 {
    0
}
