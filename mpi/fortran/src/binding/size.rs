//! `MPI_Sizeof`, which knows by its name what it is asked for.
#![allow(missing_docs)]

use super::place;
use std::ffi::c_void;

macro_rules! sizes {
    ($($name:ident: $size:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(_variable: *const c_void, size: *mut i32, ierror: *mut i32) {
            // SAFETY: the program passes places for both.
            unsafe {
                size.write($size);
                place::give(ierror, 0);
            }
        }
    )*};
}

sizes! {
    mpi_sizeof_character_: 1;
    mpi_sizeof_integer1_: 1;
    mpi_sizeof_integer2_: 2;
    mpi_sizeof_integer4_: 4;
    mpi_sizeof_integer8_: 8;
    mpi_sizeof_logical1_: 1;
    mpi_sizeof_logical2_: 2;
    mpi_sizeof_logical4_: 4;
    mpi_sizeof_logical8_: 8;
    mpi_sizeof_real4_: 4;
    mpi_sizeof_real8_: 8;
    mpi_sizeof_real16_: 16;
    mpi_sizeof_complex4_: 8;
    mpi_sizeof_complex8_: 16;
    mpi_sizeof_complex16_: 32;
}
