//! Handles as Fortran has them, which are the numbers that they are in C; statuses: five integers, in both of
//! its interfaces. And questions about accelerators.
#![allow(missing_docs, non_upper_case_globals, non_snake_case, clippy::missing_safety_doc)]

use super::{Abi, CStatus};
use front::{Abi as _, Kind};
use nmad_mpi_front as front;
use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

/// A place of Fortran's that its library writes here when it is loaded.
#[repr(transparent)]
pub struct Place(AtomicPtr<i32>);

impl Place {
    /// There is no Fortran in this process.
    const fn none() -> Place {
        Place(AtomicPtr::new(std::ptr::null_mut()))
    }
}

// What Fortran passes to ignore a status.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: Place = Place::none();
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: Place = Place::none();
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: Place = Place::none();
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: Place = Place::none();

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

macro_rules! handles {
    ($($name:ident $profiled:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: i32) -> i32 {
            handle
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $profiled(handle: i32) -> i32 {
            handle
        }
    )*};
}

// In C the header has macros of these names; who loads the library without it calls them.
handles! {
    MPI_Comm_c2f PMPI_Comm_c2f
    MPI_Comm_f2c PMPI_Comm_f2c
    MPI_Type_c2f PMPI_Type_c2f
    MPI_Type_f2c PMPI_Type_f2c
    MPI_Group_c2f PMPI_Group_c2f
    MPI_Group_f2c PMPI_Group_f2c
    MPI_Info_c2f PMPI_Info_c2f
    MPI_Info_f2c PMPI_Info_f2c
    MPI_Op_c2f PMPI_Op_c2f
    MPI_Op_f2c PMPI_Op_f2c
    MPI_Request_c2f PMPI_Request_c2f
    MPI_Request_f2c PMPI_Request_f2c
    MPI_Errhandler_c2f PMPI_Errhandler_c2f
    MPI_Errhandler_f2c PMPI_Errhandler_f2c
    MPI_Win_c2f PMPI_Win_c2f
    MPI_Win_f2c PMPI_Win_f2c
    MPI_Message_c2f PMPI_Message_c2f
    MPI_Message_f2c PMPI_Message_f2c
    MPI_Session_c2f PMPI_Session_c2f
    MPI_Session_f2c PMPI_Session_f2c
}

macro_rules! files {
    ($($number:ident $file:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $number(file: *mut c_void) -> i32 {
            Abi::file_in(file)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $file(number: i32) -> *mut c_void {
            let is_one = Abi::decode(Kind::File, number).is_some();
            Abi::file_out(if is_one { number } else { NO_FILE })
        }
    )*};
}

/// The number of `MPI_FILE_NULL`.
const NO_FILE: i32 = 0;

files! {
    MPI_File_c2f MPI_File_f2c
    PMPI_File_c2f PMPI_File_f2c
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
