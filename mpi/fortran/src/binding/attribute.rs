//! Attributes: values are integers in Fortran, functions that copy and delete them get every argument by
//! reference.
#![allow(missing_docs)]

use super::{c, place};
use crate::abi::{self, Handle};
use std::ffi::c_void;

/// The program's functions for attributes of one key. It is kept as long as the process lives: objects may
/// have attributes when their key is long freed.
struct Functions {
    copy: *const c_void,
    delete: *const c_void,
    word: isize,
    /// Values are default integers, as MPI-1 had them.
    is_narrow: bool,
}

type Copy<V> = unsafe extern "C" fn(*const i32, *const i32, *const V, *const V, *mut V, *mut i32, *mut i32);
type Delete<V> = unsafe extern "C" fn(*const i32, *const i32, *const V, *const V, *mut i32);

/// Calls a function that copies an attribute, with values as wide as the program has them.
unsafe fn copied(
    it: &Functions,
    (object, keyval): (i32, i32),
    (from, to, flag): (*mut c_void, *mut *mut c_void, *mut i32),
) -> i32 {
    let (mut code, from) = (0, from.expose_provenance() as isize);
    // SAFETY: the program's function, which has this type; places for its answers are ours or the library's.
    unsafe {
        let value = if it.is_narrow {
            let function = std::mem::transmute::<*const c_void, Copy<i32>>(it.copy);
            let (word, from, mut value) = (it.word as i32, from as i32, 0);
            function(
                &raw const object,
                &raw const keyval,
                &raw const word,
                &raw const from,
                &raw mut value,
                flag,
                &raw mut code,
            );
            value as isize
        } else {
            let function = std::mem::transmute::<*const c_void, Copy<isize>>(it.copy);
            let mut value = 0;
            function(
                &raw const object,
                &raw const keyval,
                &raw const it.word,
                &raw const from,
                &raw mut value,
                flag,
                &raw mut code,
            );
            value
        };
        to.write(std::ptr::with_exposed_provenance_mut(value as usize));
    }
    code
}

/// Calls a function that deletes an attribute.
unsafe fn deleted(it: &Functions, object: i32, keyval: i32, value: *mut c_void) -> i32 {
    let (mut code, value) = (0, value.expose_provenance() as isize);
    // SAFETY: the program's function, which has this type.
    unsafe {
        if it.is_narrow {
            let function = std::mem::transmute::<*const c_void, Delete<i32>>(it.delete);
            let (word, value) = (it.word as i32, value as i32);
            function(&raw const object, &raw const keyval, &raw const value, &raw const word, &raw mut code);
        } else {
            let function = std::mem::transmute::<*const c_void, Delete<isize>>(it.delete);
            function(
                &raw const object,
                &raw const keyval,
                &raw const value,
                &raw const it.word,
                &raw mut code,
            );
        }
    }
    code
}

/// What C has for each kind of objects.
macro_rules! called {
    ($($copy:ident $delete:ident $out:ident;)*) => {$(
        unsafe extern "C" fn $copy(
            object: Handle,
            keyval: i32,
            state: *mut c_void,
            from: *mut c_void,
            to: *mut *mut c_void,
            flag: *mut i32,
        ) -> i32 {
            // SAFETY: the state is one of ours, the rest the library's.
            unsafe { copied(&*state.cast(), (abi::$out(object), keyval), (from, to, flag)) }
        }

        unsafe extern "C" fn $delete(
            object: Handle,
            keyval: i32,
            value: *mut c_void,
            state: *mut c_void,
        ) -> i32 {
            // SAFETY: the state is one of ours, the rest the library's.
            unsafe { deleted(&*state.cast(), abi::$out(object), keyval, value) }
        }
    )*};
}

called! {
    copy_comm delete_comm comm_out;
    copy_type delete_type type_out;
    copy_win delete_win win_out;
}

/// What C is given for a function that copies: its own constants where there are such.
fn copy_for(given: *const c_void, ours: *const c_void) -> *const c_void {
    let null: [*const c_void; 4] = [
        mpi_null_copy_fn_ as *const c_void,
        mpi_comm_null_copy_fn_ as *const c_void,
        mpi_type_null_copy_fn_ as *const c_void,
        mpi_win_null_copy_fn_ as *const c_void,
    ];
    let dup: [*const c_void; 4] = [
        mpi_dup_fn_ as *const c_void,
        mpi_comm_dup_fn_ as *const c_void,
        mpi_type_dup_fn_ as *const c_void,
        mpi_win_dup_fn_ as *const c_void,
    ];
    match given {
        _ if null.contains(&given) => std::ptr::null(),
        _ if dup.contains(&given) => abi::dup_fn(),
        _ => ours,
    }
}

fn delete_for(given: *const c_void, ours: *const c_void) -> *const c_void {
    let null: [*const c_void; 4] = [
        mpi_null_delete_fn_ as *const c_void,
        mpi_comm_null_delete_fn_ as *const c_void,
        mpi_type_null_delete_fn_ as *const c_void,
        mpi_win_null_delete_fn_ as *const c_void,
    ];
    if null.contains(&given) { std::ptr::null() } else { ours }
}

type Create = unsafe extern "C" fn(*const c_void, *const c_void, *mut i32, *mut c_void) -> i32;

/// Makes a key with functions of the program.
unsafe fn create(
    create: Create,
    own: Functions,
    (copy, delete): (*const c_void, *const c_void),
    (keyval, ierror): (*mut i32, *mut i32),
) {
    let (copy, delete) = (copy_for(own.copy, copy), delete_for(own.delete, delete));
    let state = Box::into_raw(Box::new(own));
    // SAFETY: the caller passes a function of the library, and places for the answers.
    unsafe {
        let code = create(copy, delete, keyval, state.cast());
        if code != 0 {
            drop(Box::from_raw(state));
        }
        place::give(ierror, code);
    }
}

symbols! {
    fn mpi_comm_create_keyval_ pmpi_comm_create_keyval_(
        copy: *const c_void, delete: *const c_void, keyval: *mut i32, word: *const isize, ierror: *mut i32,
    ) {
        let own = Functions { copy, delete, word: *word, is_narrow: false };
        let called = (copy_comm as *const c_void, delete_comm as *const c_void);
        create(c::PMPI_Comm_create_keyval, own, called, (keyval, ierror));
    }

    fn mpi_keyval_create_ pmpi_keyval_create_(
        copy: *const c_void, delete: *const c_void, keyval: *mut i32, word: *const i32, ierror: *mut i32,
    ) {
        let own = Functions { copy, delete, word: *word as isize, is_narrow: true };
        let called = (copy_comm as *const c_void, delete_comm as *const c_void);
        create(c::PMPI_Comm_create_keyval, own, called, (keyval, ierror));
    }

    fn mpi_type_create_keyval_ pmpi_type_create_keyval_(
        copy: *const c_void, delete: *const c_void, keyval: *mut i32, word: *const isize, ierror: *mut i32,
    ) {
        let own = Functions { copy, delete, word: *word, is_narrow: false };
        let called = (copy_type as *const c_void, delete_type as *const c_void);
        create(c::PMPI_Type_create_keyval, own, called, (keyval, ierror));
    }

    fn mpi_win_create_keyval_ pmpi_win_create_keyval_(
        copy: *const c_void, delete: *const c_void, keyval: *mut i32, word: *const isize, ierror: *mut i32,
    ) {
        let own = Functions { copy, delete, word: *word, is_narrow: false };
        let called = (copy_win as *const c_void, delete_win as *const c_void);
        create(c::PMPI_Win_create_keyval, own, called, (keyval, ierror));
    }
}

/// What Fortran gets for an attribute that C answers as a pointer: MPI's own are pointers to numbers, but
/// for the memory of a window.
unsafe fn value(keyval: i32, found: *mut c_void) -> isize {
    let [base, size] = abi::WIN;
    // SAFETY: the library answers pointers to numbers that it keeps.
    unsafe {
        match keyval {
            keyval if keyval == size => found.cast::<isize>().read(),
            keyval if keyval != base && abi::is_predefined(keyval) => found.cast::<i32>().read() as isize,
            _ => found.expose_provenance() as isize,
        }
    }
}

type Get = unsafe extern "C" fn(Handle, i32, *mut *mut c_void, *mut i32) -> i32;

/// The value of an attribute, if it has one.
unsafe fn get(get: Get, object: Handle, keyval: i32, flag: *mut i32, ierror: *mut i32) -> Option<isize> {
    let (keyval, mut found) = (abi::keyval_in(keyval), std::ptr::null_mut());
    // SAFETY: the caller passes a function of the library, and places for the answers.
    unsafe {
        let code = get(object, keyval, &raw mut found, flag);
        place::give(ierror, code);
        (code == 0 && *flag != 0).then(|| value(keyval, found))
    }
}

symbols! {
    fn mpi_comm_get_attr_ pmpi_comm_get_attr_(
        comm: *const i32, keyval: *const i32, value: *mut isize, flag: *mut i32, ierror: *mut i32,
    ) {
        if let Some(found) = get(c::PMPI_Comm_get_attr, abi::comm_in(*comm), *keyval, flag, ierror) {
            *value = found;
        }
    }

    fn mpi_attr_get_ pmpi_attr_get_(
        comm: *const i32, keyval: *const i32, value: *mut i32, flag: *mut i32, ierror: *mut i32,
    ) {
        if let Some(found) = get(c::PMPI_Comm_get_attr, abi::comm_in(*comm), *keyval, flag, ierror) {
            *value = found as i32;
        }
    }

    fn mpi_attr_put_ pmpi_attr_put_(
        comm: *const i32, keyval: *const i32, value: *const i32, ierror: *mut i32,
    ) {
        let wide = *value as isize;
        let (comm, keyval) = (abi::comm_in(*comm), abi::keyval_in(*keyval));
        place::give(ierror, c::PMPI_Comm_set_attr(comm, keyval, place::word(&raw const wide)));
    }

    fn mpi_type_get_attr_ pmpi_type_get_attr_(
        datatype: *const i32, keyval: *const i32, value: *mut isize, flag: *mut i32, ierror: *mut i32,
    ) {
        if let Some(found) = get(c::PMPI_Type_get_attr, abi::type_in(*datatype), *keyval, flag, ierror) {
            *value = found;
        }
    }

    fn mpi_win_get_attr_ pmpi_win_get_attr_(
        win: *const i32, keyval: *const i32, value: *mut isize, flag: *mut i32, ierror: *mut i32,
    ) {
        if let Some(found) = get(c::PMPI_Win_get_attr, abi::win_in(*win), *keyval, flag, ierror) {
            *value = found;
        }
    }
}

/// What programs pass as functions for attributes: copy nothing, copy the value, delete nothing.
macro_rules! given {
    ($value:ty: $($null:ident $dup:ident $delete:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $null(
            _object: *const i32, _keyval: *const i32, _word: *const $value, _from: *const $value,
            _to: *mut $value, flag: *mut i32, ierror: *mut i32,
        ) {
            // SAFETY: the caller passes places for the answers.
            unsafe {
                flag.write(0);
                ierror.write(0);
            }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $dup(
            _object: *const i32, _keyval: *const i32, _word: *const $value, from: *const $value,
            to: *mut $value, flag: *mut i32, ierror: *mut i32,
        ) {
            // SAFETY: the caller passes places for the answers.
            unsafe {
                to.write(from.read());
                flag.write(1);
                ierror.write(0);
            }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $delete(
            _object: *const i32, _keyval: *const i32, _value: *const $value, _word: *const $value,
            ierror: *mut i32,
        ) {
            // SAFETY: the caller passes a place for the answer.
            unsafe { ierror.write(0) }
        }
    )*};
}

given! { i32:
    mpi_null_copy_fn_ mpi_dup_fn_ mpi_null_delete_fn_;
}

given! { isize:
    mpi_comm_null_copy_fn_ mpi_comm_dup_fn_ mpi_comm_null_delete_fn_;
    mpi_type_null_copy_fn_ mpi_type_dup_fn_ mpi_type_null_delete_fn_;
    mpi_win_null_copy_fn_ mpi_win_dup_fn_ mpi_win_null_delete_fn_;
}
