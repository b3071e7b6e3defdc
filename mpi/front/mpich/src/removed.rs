//! Functions that MPI-3.0 has removed. MPICH's header has them no more, but its library does: programs that
//! were compiled long ago call them. Each is another name of what replaced it.
#![allow(missing_docs, non_snake_case, clippy::missing_safety_doc)]

use super::{Abi, c_void, wrapper};

macro_rules! removed {
    ($($name:ident, $profiled:ident ($($argument:ident: $kind:ty),*) = $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> i32 {
            // SAFETY: the program passes what the standard said.
            unsafe { $body }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $profiled($($argument: $kind),*) -> i32 {
            // SAFETY: the program passes what the standard said.
            unsafe { $body }
        }
    )*};
}

/// One of the two numbers that `MPI_Type_get_extent` gives.
unsafe fn extent(datatype: i32, pick: fn(i64, i64) -> i64, answer: *mut i64) -> i32 {
    let (mut begin, mut extent) = (0, 0);
    // SAFETY: both are places of ours; the caller's is valid.
    unsafe {
        let code = wrapper::type_get_extent::<Abi>(datatype, &raw mut begin, &raw mut extent);
        if code == 0 && !answer.is_null() {
            answer.write(pick(begin, extent));
        }
        code
    }
}

removed! {
    MPI_Address, PMPI_Address(location: *mut c_void, address: *mut i64) =
        wrapper::get_address::<Abi>(location, address);
    MPI_Errhandler_create, PMPI_Errhandler_create(function: *const c_void, errhandler: *mut i32) =
        wrapper::comm_create_errhandler::<Abi>(function, errhandler);
    MPI_Errhandler_get, PMPI_Errhandler_get(comm: i32, errhandler: *mut i32) =
        wrapper::comm_get_errhandler::<Abi>(comm, errhandler);
    MPI_Errhandler_set, PMPI_Errhandler_set(comm: i32, errhandler: i32) =
        wrapper::comm_set_errhandler::<Abi>(comm, errhandler);
    MPI_Type_extent, PMPI_Type_extent(datatype: i32, answer: *mut i64) =
        extent(datatype, |_, extent| extent, answer);
    MPI_Type_lb, PMPI_Type_lb(datatype: i32, answer: *mut i64) = extent(datatype, |begin, _| begin, answer);
    MPI_Type_ub, PMPI_Type_ub(datatype: i32, answer: *mut i64) =
        extent(datatype, |begin, extent| begin + extent, answer);
    MPI_Type_hindexed, PMPI_Type_hindexed(
        count: i32, lens: *const i32, places: *const i64, old: i32, new: *mut i32
    ) = wrapper::type_create_hindexed::<Abi>(count, lens, places, old, new);
    MPI_Type_hvector, PMPI_Type_hvector(count: i32, len: i32, stride: i64, old: i32, new: *mut i32) =
        wrapper::type_create_hvector::<Abi>(count, len, stride, old, new);
    MPI_Type_struct, PMPI_Type_struct(
        count: i32, lens: *const i32, places: *const i64, types: *const i32, new: *mut i32
    ) = wrapper::type_create_struct::<Abi>(count, lens, places, types, new);
}
