//! Arguments that may be one of Fortran's constants that are places, which C has as addresses.

use crate::abi;
use std::ffi::c_void;

/// MPI_BUFFER_AUTOMATIC
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
static mut madmpia_: i32 = 0;

/// Whether an argument is this constant.
fn is<T, U>(argument: *const T, constant: *const U) -> bool {
    std::ptr::eq(argument.cast::<c_void>(), constant.cast())
}

/// Member `index` of the common block of MPI_BOTTOM.
fn member(index: usize) -> *const i32 {
    (&raw const abi::places).cast::<i32>().wrapping_add(index)
}

pub(crate) fn is_in_place(buffer: *const c_void) -> bool {
    is(buffer, member(1))
}

/// A buffer.
#[inline]
pub(crate) fn choice(buffer: *mut c_void) -> *mut c_void {
    match buffer {
        _ if is(buffer, member(0)) => std::ptr::null_mut(),
        _ if is(buffer, member(1)) => std::ptr::without_provenance_mut(abi::IN_PLACE),
        _ if is(buffer, &raw const madmpia_) => std::ptr::without_provenance_mut(abi::AUTOMATIC),
        _ => buffer,
    }
}

/// A buffer that C gives back: the constant, if it was one.
pub(crate) unsafe fn given_back(buffer: *mut *mut c_void) {
    // SAFETY: the program passes a place for a pointer.
    unsafe {
        if buffer.read().addr() == abi::AUTOMATIC {
            buffer.write((&raw mut madmpia_).cast());
        }
    }
}

/// A status.
#[inline]
pub(crate) fn status(status: *mut c_void) -> *mut c_void {
    if is(status, member(2)) { std::ptr::without_provenance_mut(abi::STATUS_IGNORE) } else { status }
}

/// A list of statuses. No caller needs to tell the two constants apart.
pub(crate) fn statuses(list: *mut c_void) -> *mut c_void {
    if is(list, &raw const abi::lists) {
        return std::ptr::without_provenance_mut(abi::STATUS_IGNORE);
    }
    status(list)
}

/// Whether error codes of processes that are started are not wanted.
pub(crate) fn errcodes(list: *mut i32) -> *mut i32 {
    let ignored = (&raw const abi::lists).cast::<i32>().wrapping_add(abi::STATUS);
    if is(list, ignored) { std::ptr::null_mut() } else { list }
}

/// Whether it is MPI_ARGVS_NULL or MPI_ARGV_NULL.
pub(crate) fn is_no_text(text: *const std::ffi::c_char) -> bool {
    let first = (&raw const abi::texts).cast::<u8>();
    is(text, first) || is(text, first.wrapping_add(1))
}

/// The weights of edges.
pub(crate) fn weights(list: *mut i32) -> *mut i32 {
    match list {
        _ if is(list, &raw const abi::unweighted) => abi::unweighted_in_c(),
        _ if is(list, &raw const abi::weights_empty) => abi::weights_empty_in_c(),
        _ => list,
    }
}

/// A word that C has as a pointer.
pub(crate) unsafe fn word(word: *const isize) -> *mut c_void {
    // SAFETY: the program passes an integer of the size of an address.
    std::ptr::with_exposed_provenance_mut(unsafe { word.read() } as usize)
}

/// How long a list is.
#[allow(dead_code)]
pub(crate) fn length(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

/// Writes an error code, or nothing: in `mpi_f08` the argument may be missing.
#[inline]
pub(crate) unsafe fn give(ierror: *mut i32, code: i32) {
    if !ierror.is_null() {
        // SAFETY: the program passes a place for it.
        unsafe { ierror.write(code) }
    }
}

/// Fortran counts from one; negative numbers stand for none.
pub(crate) unsafe fn count_from_one(indices: *mut i32, count: i32) {
    for index in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the library has written so many.
        unsafe {
            let place = indices.add(index);
            place.write(place.read() + i32::from(place.read() >= 0));
        }
    }
}
