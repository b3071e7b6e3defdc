//! Symbols that MPICH has and the standard has not.
#![allow(missing_docs, non_upper_case_globals, non_snake_case)]

use std::ffi::c_void;

/// A pointer that programs compare with others.
#[repr(transparent)]
pub struct Mark(*const i32);

// SAFETY: nobody writes to what it points to.
unsafe impl Sync for Mark {}

static PLACES: [i32; 3] = [0; 3];

#[unsafe(no_mangle)]
pub static MPI_UNWEIGHTED: Mark = Mark(&raw const PLACES[0]);
#[unsafe(no_mangle)]
pub static MPI_WEIGHTS_EMPTY: Mark = Mark(&raw const PLACES[1]);
#[unsafe(no_mangle)]
pub static MPI_T_PVAR_ALL_HANDLES: Mark = Mark(&raw const PLACES[2]);

pub(crate) fn unweighted() -> *const i32 {
    MPI_UNWEIGHTED.0
}

pub(crate) fn weights_empty() -> *const i32 {
    MPI_WEIGHTS_EMPTY.0
}

pub(crate) fn all_handles() -> *const c_void {
    MPI_T_PVAR_ALL_HANDLES.0.cast()
}

/// `MPI_DUP_FN`: copies the value of an attribute.
///
/// # Safety
/// Places for the answers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    _object: i32,
    _keyval: i32,
    _state: *mut c_void,
    value: *mut c_void,
    new: *mut *mut c_void,
    flag: *mut i32,
) -> i32 {
    // SAFETY: the caller says so.
    unsafe {
        new.write(value);
        flag.write(1);
    }
    0
}
