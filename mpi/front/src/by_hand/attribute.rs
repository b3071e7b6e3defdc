//! Attributes: functions that copy and delete them, and values that may not be there.

use super::{Word, function};
use crate::{Abi, Numbers, codes, give};
use nmad_mpi::api::{self, Copy, Delete, Owner};
use nmad_mpi::error::{Class, Error, Result};
use nmad_mpi::handle::{Comm, Keyval, Type, Win};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI32, Ordering};

type CopyFunction<H> =
    unsafe extern "C" fn(H, i32, *mut c_void, *mut c_void, *mut *mut c_void, *mut i32) -> i32;
type DeleteFunction<H> = unsafe extern "C" fn(H, i32, *mut c_void, *mut c_void) -> i32;

/// The handle of the object that an attribute belongs to.
fn handle<A: Abi>(owner: Owner, object: u32) -> A::Handle {
    match owner {
        Owner::Type => give::datatype::<A>(Type(object)),
        Owner::Comm => give::comm::<A>(Comm(object)),
        Owner::Win => give::win::<A>(Win(object)),
    }
}

/// What a function of the program answered.
fn answered<A: Abi>(code: i32, what: &str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let class = codes::code_in::<A>(code).class;
    Err(Error::new(class, format!("the {what} function of an attribute answered {code}")))
}

fn copy<A: Abi>(owner: Owner, address: *const c_void, state: Word) -> Copy {
    if A::is_dup(address) {
        return Copy::Dup;
    }
    // SAFETY: the program passes a function of this type, or NULL.
    let Some(called) = (unsafe { function::<CopyFunction<A::Handle>>(address) }) else { return Copy::Null };
    Copy::User(Box::new(move |object, keyval, value| {
        let (mut new, mut flag) = (std::ptr::null_mut(), 0);
        let (handle, keyval) = (handle::<A>(owner, object), give::keyval::<A>(keyval));
        // SAFETY: places for what it answers live for the call.
        let code = unsafe { called(handle, keyval, state.get(), Word(value).get(), &mut new, &mut flag) };
        answered::<A>(code, "copy")?;
        Ok((flag != 0).then(|| new.expose_provenance()))
    }))
}

fn delete<A: Abi>(owner: Owner, address: *const c_void, state: Word) -> Delete {
    // SAFETY: the program passes a function of this type, or NULL.
    let Some(called) = (unsafe { function::<DeleteFunction<A::Handle>>(address) }) else {
        return Delete::Null;
    };
    Delete::User(Box::new(move |object, keyval, value| {
        let (handle, keyval) = (handle::<A>(owner, object), give::keyval::<A>(keyval));
        // SAFETY: the program's function, with its own value and state.
        answered::<A>(unsafe { called(handle, keyval, Word(value).get(), state.get()) }, "delete")
    }))
}

macro_rules! keyvals {
    ($($owner:ident: $create:ident$(, $free:ident)?;)*) => {$(
        pub(crate) fn $create<A: Abi>(
            copied: *const c_void,
            deleted: *const c_void,
            keyval: *mut i32,
            state: usize,
        ) -> Result<()> {
            let (owner, state) = (Owner::$owner, Word(state));
            let (copy, delete) = (copy::<A>(owner, copied, state), delete::<A>(owner, deleted, state));
            let made = api::create_keyval(owner, copy, delete);
            give::value(keyval, give::keyval::<A>(made));
            Ok(())
        }

        $(pub(crate) fn $free<A: Abi>(keyval: &mut Keyval) -> Result<()> {
            api::free_keyval(Owner::$owner, keyval)
        })?
    )*};
}

keyvals! {
    Comm: comm_create_keyval, comm_free_keyval;
    Comm: keyval_create;
    Type: type_create_keyval, type_free_keyval;
    Win: win_create_keyval, win_free_keyval;
}

fn found(found: Option<usize>, value: *mut *mut c_void, flag: *mut i32) {
    give::value(flag, found.is_some().into());
    if let Some(found) = found {
        give::value(value, Word(found).get());
    }
}

pub(crate) fn comm_get_attr<A: Abi>(
    comm: Comm,
    keyval: Keyval,
    value: *mut *mut c_void,
    flag: *mut i32,
) -> Result<()> {
    let attribute = api::comm_get_attr(comm, keyval)?;
    found(attribute.map(|attribute| predefined::<A>(keyval, attribute)), value, flag);
    Ok(())
}

/// Predefined attributes are pointers to numbers; some are constants.
fn predefined<A: Abi>(keyval: Keyval, attribute: usize) -> usize {
    static NUMBERS: [AtomicI32; 3] = [const { AtomicI32::new(0) }; 3];
    let (place, translate): (usize, fn(i32) -> i32) = match keyval {
        Keyval::IO => (0, A::rank_out),
        Keyval::HOST => (1, A::rank_out),
        Keyval::LAST_USED_CODE => (2, |code| codes::class_out::<A>(Class(code))),
        _ => return attribute,
    };
    let number = std::ptr::with_exposed_provenance::<AtomicI32>(attribute);
    // SAFETY: the core keeps the number as long as the process lives.
    NUMBERS[place].store(translate(unsafe { &*number }.load(Ordering::Relaxed)), Ordering::Relaxed);
    std::ptr::from_ref(&NUMBERS[place]).expose_provenance()
}

pub(crate) fn type_get_attr<A: Abi>(
    datatype: Type,
    keyval: Keyval,
    value: *mut *mut c_void,
    flag: *mut i32,
) -> Result<()> {
    found(api::type_get_attr(datatype, keyval)?, value, flag);
    Ok(())
}

pub(crate) fn win_get_attr<A: Abi>(
    win: Win,
    keyval: Keyval,
    value: *mut *mut c_void,
    flag: *mut i32,
) -> Result<()> {
    let attribute = api::win_get_attr(win, keyval)?;
    found(attribute.map(|attribute| of_window::<A>(keyval, attribute)), value, flag);
    Ok(())
}

/// Predefined attributes of windows are pointers to numbers, of which some are constants; that of the memory
/// is its address.
fn of_window<A: Abi>(keyval: Keyval, attribute: usize) -> usize {
    const FLAVORS: i32 = 4;
    static NUMBERS: [AtomicI32; FLAVORS as usize + 1] = [const { AtomicI32::new(0) }; FLAVORS as usize + 1];
    let number = || {
        let number = std::ptr::with_exposed_provenance::<AtomicI32>(attribute);
        // SAFETY: the core keeps the number as long as there is the window.
        unsafe { &*number }.load(Ordering::Relaxed)
    };
    // Windows differ in their flavors, so each has a place.
    let (place, value) = match keyval {
        Keyval::WIN_CREATE_FLAVOR => {
            let flavor = number();
            (1 + flavor.rem_euclid(FLAVORS), give::number::<A>(Numbers::Flavor, flavor))
        }
        Keyval::WIN_MODEL => (0, give::number::<A>(Numbers::Model, number())),
        _ => return attribute,
    };
    let place = &NUMBERS[place as usize];
    place.store(value, Ordering::Relaxed);
    std::ptr::from_ref(place).expose_provenance()
}
