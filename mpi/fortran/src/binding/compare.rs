//! What Fortran has beside C's functions: comparisons of handles, copies of statuses, a call that keeps
//! compilers from moving accesses to a buffer over it.
#![allow(missing_docs)]

use super::place;
use crate::abi;
use std::ffi::c_void;

macro_rules! comparisons {
    ($($equal:ident $differ:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $equal(one: *const i32, other: *const i32) -> i32 {
            // SAFETY: the program passes two handles.
            unsafe { (*one == *other).into() }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $differ(one: *const i32, other: *const i32) -> i32 {
            // SAFETY: the program passes two handles.
            unsafe { (*one != *other).into() }
        }
    )*};
}

comparisons! {
    madmpi_comm_eq_ madmpi_comm_ne_;
    madmpi_type_eq_ madmpi_type_ne_;
    madmpi_errhandler_eq_ madmpi_errhandler_ne_;
    madmpi_file_eq_ madmpi_file_ne_;
    madmpi_group_eq_ madmpi_group_ne_;
    madmpi_info_eq_ madmpi_info_ne_;
    madmpi_message_eq_ madmpi_message_ne_;
    madmpi_op_eq_ madmpi_op_ne_;
    madmpi_request_eq_ madmpi_request_ne_;
    madmpi_session_eq_ madmpi_session_ne_;
    madmpi_win_eq_ madmpi_win_ne_;
}

/// Does nothing, which compilers cannot know.
#[unsafe(no_mangle)]
pub extern "C" fn mpi_f_sync_reg_(_buffer: *const c_void) {}

symbols! {

    fn mpi_status_f2f08_ pmpi_status_f2f08_(from: *const i32, to: *mut i32, ierror: *mut i32) {
        std::ptr::copy(from, to, abi::STATUS);
        place::give(ierror, 0);
    }

    fn mpi_status_f082f_ pmpi_status_f082f_(from: *const i32, to: *mut i32, ierror: *mut i32) {
        std::ptr::copy(from, to, abi::STATUS);
        place::give(ierror, 0);
    }
}
