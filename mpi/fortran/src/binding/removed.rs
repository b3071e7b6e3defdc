//! Functions that MPI-3.0 has removed, which old programs call: addresses and distances are default integers.
#![allow(missing_docs)]

use super::{c, place};
use crate::abi;
use std::ffi::c_void;

/// A list of distances.
unsafe fn wide(list: *const i32, count: i32) -> Vec<i64> {
    // SAFETY: the program passes a list of this length.
    (0..place::length(count.into())).map(|index| unsafe { list.add(index).read() }.into()).collect()
}

/// One of the two numbers that `MPI_Type_get_extent` gives.
unsafe fn extent(datatype: *const i32, pick: fn(i64, i64) -> i64, answer: *mut i32, ierror: *mut i32) {
    let (mut begin, mut extent) = (0, 0);
    // SAFETY: the program passes places for the answers.
    unsafe {
        let code = c::PMPI_Type_get_extent(abi::type_in(*datatype), &raw mut begin, &raw mut extent);
        if code == 0 {
            answer.write(pick(begin, extent) as i32);
        }
        place::give(ierror, code);
    }
}

/// Writes the handle of a new type.
unsafe fn made(new: *mut i32, ierror: *mut i32, make: impl FnOnce(*mut abi::Handle) -> i32) {
    let mut handle = abi::no_handle();
    // SAFETY: the program passes places for the answers.
    unsafe {
        let code = make(&raw mut handle);
        if code == 0 {
            new.write(abi::type_out(handle));
        }
        place::give(ierror, code);
    }
}

symbols! {
    fn mpi_address_ pmpi_address_(location: *mut c_void, address: *mut i32, ierror: *mut i32) {
        let mut wide = 0;
        let code = c::PMPI_Get_address(place::choice(location), &raw mut wide);
        address.write(wide as i32);
        place::give(ierror, code);
    }

    fn mpi_errhandler_create_ pmpi_errhandler_create_(
        function: *const c_void, errhandler: *mut i32, ierror: *mut i32,
    ) {
        c::pmpi_comm_create_errhandler_(function, errhandler, ierror);
    }

    fn mpi_errhandler_get_ pmpi_errhandler_get_(comm: *mut i32, errhandler: *mut i32, ierror: *mut i32) {
        c::pmpi_comm_get_errhandler_(comm, errhandler, ierror);
    }

    fn mpi_errhandler_set_ pmpi_errhandler_set_(comm: *mut i32, errhandler: *mut i32, ierror: *mut i32) {
        c::pmpi_comm_set_errhandler_(comm, errhandler, ierror);
    }

    fn mpi_type_extent_ pmpi_type_extent_(datatype: *const i32, answer: *mut i32, ierror: *mut i32) {
        extent(datatype, |_, extent| extent, answer, ierror);
    }

    fn mpi_type_lb_ pmpi_type_lb_(datatype: *const i32, answer: *mut i32, ierror: *mut i32) {
        extent(datatype, |begin, _| begin, answer, ierror);
    }

    fn mpi_type_ub_ pmpi_type_ub_(datatype: *const i32, answer: *mut i32, ierror: *mut i32) {
        extent(datatype, |begin, extent| begin + extent, answer, ierror);
    }

    fn mpi_type_hvector_ pmpi_type_hvector_(
        count: *const i32, blocklength: *const i32, stride: *const i32, old: *const i32, new: *mut i32,
        ierror: *mut i32,
    ) {
        let old = abi::type_in(*old);
        let stride = (*stride).into();
        made(new, ierror, |new| c::PMPI_Type_create_hvector(*count, *blocklength, stride, old, new));
    }

    fn mpi_type_hindexed_ pmpi_type_hindexed_(
        count: *const i32, lengths: *mut i32, places: *const i32, old: *const i32, new: *mut i32,
        ierror: *mut i32,
    ) {
        let (mut places, old) = (wide(places, *count), abi::type_in(*old));
        made(new, ierror, |new| {
            c::PMPI_Type_create_hindexed(*count, lengths, places.as_mut_ptr(), old, new)
        });
    }

    fn mpi_type_struct_ pmpi_type_struct_(
        count: *mut i32, lengths: *mut i32, places: *const i32, types: *mut i32, new: *mut i32,
        ierror: *mut i32,
    ) {
        let mut places = wide(places, *count);
        c::pmpi_type_create_struct_(count, lengths, places.as_mut_ptr(), types, new, ierror);
    }
}
