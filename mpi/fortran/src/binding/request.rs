//! Generalized requests, and functions that convert data of files: functions of the program that the
//! library of C calls. Those of Fortran get every argument by reference, and answer in the last one.
#![allow(missing_docs)]

use super::{c, place};
use crate::abi;
use std::ffi::{c_char, c_void};

type Query = unsafe extern "C" fn(*const isize, *mut c_void, *mut i32);
type Free = unsafe extern "C" fn(*const isize, *mut i32);
type Cancel = unsafe extern "C" fn(*const isize, *const i32, *mut i32);

/// The program's functions and its word for them.
struct Generalized {
    query: Query,
    free: Free,
    cancel: Cancel,
    word: isize,
}

unsafe extern "C" fn query(state: *mut c_void, status: *mut c_void) -> i32 {
    // SAFETY: it was made below, and lives until the request is freed.
    let it = unsafe { &*state.cast::<Generalized>() };
    let mut code = 0;
    // SAFETY: the program's function.
    unsafe { (it.query)(&raw const it.word, status, &raw mut code) };
    code
}

unsafe extern "C" fn free(state: *mut c_void) -> i32 {
    // SAFETY: it was made below, and the library calls this once and last.
    let it = unsafe { Box::from_raw(state.cast::<Generalized>()) };
    let mut code = 0;
    // SAFETY: the program's function.
    unsafe { (it.free)(&raw const it.word, &raw mut code) };
    code
}

unsafe extern "C" fn cancel(state: *mut c_void, complete: i32) -> i32 {
    // SAFETY: it was made below, and lives until the request is freed.
    let it = unsafe { &*state.cast::<Generalized>() };
    let mut code = 0;
    // SAFETY: the program's function.
    unsafe { (it.cancel)(&raw const it.word, &raw const complete, &raw mut code) };
    code
}

symbols! {
    fn mpi_grequest_start_ pmpi_grequest_start_(
        query_fn: Query, free_fn: Free, cancel_fn: Cancel, extra_state: *const isize, request: *mut i32,
        ierror: *mut i32,
    ) {
        let own = Generalized { query: query_fn, free: free_fn, cancel: cancel_fn, word: *extra_state };
        let state = Box::into_raw(Box::new(own));
        let (query, free, cancel) = (query as *const c_void, free as *const c_void, cancel as *const c_void);
        let mut made = abi::no_handle();
        let code = c::PMPI_Grequest_start(query, free, cancel, state.cast(), &raw mut made);
        match code {
            0 => *request = abi::request_out(made),
            _ => drop(Box::from_raw(state)),
        }
        place::give(ierror, code);
    }

    fn mpi_conversion_fn_null_ pmpi_conversion_fn_null_(
        _userbuf: *mut c_void, _datatype: *const i32, _count: *const i32, _filebuf: *mut c_void,
        _position: *const i64, _extra_state: *const isize, ierror: *mut i32,
    ) {
        place::give(ierror, 0);
    }

    fn mpi_register_datarep_ pmpi_register_datarep_(
        datarep: *const c_char, read: Convert, write: Convert, extent: Extent, extra_state: *const isize,
        ierror: *mut i32, datarep_len: usize,
    ) {
        let name = super::text::taken(datarep, datarep_len);
        let state = Box::new(Representation { read, write, extent, word: *extra_state });
        let null = mpi_conversion_fn_null_ as *const c_void;
        let is_null = |function: Convert| function as *const c_void == null;
        let or_null = |function: Convert, ours: *const c_void| {
            if is_null(function) { std::ptr::null() } else { ours }
        };
        let code = c::PMPI_Register_datarep(
            name.as_ptr().cast_mut(),
            or_null(read, read_data as *const c_void),
            or_null(write, write_data as *const c_void),
            extent_of as *const c_void,
            // It is used as long as the process lives.
            Box::into_raw(state).cast(),
        );
        place::give(ierror, code);
    }
}

type Convert = unsafe extern "C" fn(
    *mut c_void,
    *const i32,
    *const i32,
    *mut c_void,
    *const i64,
    *const isize,
    *mut i32,
);
type Extent = unsafe extern "C" fn(*const i32, *mut isize, *const isize, *mut i32);

/// How data of files is converted.
struct Representation {
    read: Convert,
    write: Convert,
    extent: Extent,
    word: isize,
}

unsafe extern "C" fn extent_of(datatype: abi::Handle, extent: *mut isize, state: *mut c_void) -> i32 {
    // SAFETY: it was made above, and lives forever.
    let it = unsafe { &*state.cast::<Representation>() };
    let mut code = 0;
    // SAFETY: the program's function.
    unsafe {
        let datatype = abi::type_out(datatype);
        (it.extent)(&raw const datatype, extent, &raw const it.word, &raw mut code);
    }
    code
}

macro_rules! conversions {
    ($($name:ident: $field:ident;)*) => {$(
        unsafe extern "C" fn $name(
            userbuf: *mut c_void,
            datatype: abi::Handle,
            count: i32,
            filebuf: *mut c_void,
            position: i64,
            state: *mut c_void,
        ) -> i32 {
            // SAFETY: it was made above, and lives forever.
            let it = unsafe { &*state.cast::<Representation>() };
            let mut code = 0;
            // SAFETY: the program's function.
            unsafe {
                let datatype = abi::type_out(datatype);
                let (datatype, count) = (&raw const datatype, &raw const count);
                let (position, word) = (&raw const position, &raw const it.word);
                (it.$field)(userbuf, datatype, count, filebuf, position, word, &raw mut code);
            }
            code
        }
    )*};
}

conversions! {
    read_data: read;
    write_data: write;
}
