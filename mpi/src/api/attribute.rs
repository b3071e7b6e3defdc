//! Attributes.

use crate::attribute;
pub use crate::attribute::{Copy, CopyFunction, Delete, DeleteFunction, Owner};
use crate::codes::LAST_USED;
use crate::comm::{lookup, share};
use crate::constant::{PROC_NULL, TAG_UB, UNDEFINED};
use crate::error::Result;
use crate::handle::{Comm, Keyval};
use std::sync::atomic::{AtomicI32, Ordering};

/// `MPI_Comm_create_keyval`, `MPI_Type_create_keyval`, `MPI_Win_create_keyval`
pub fn create_keyval(owner: Owner, copy: Copy, delete: Delete) -> Keyval {
    attribute::create(owner, copy, delete)
}

/// `MPI_Comm_free_keyval`, `MPI_Type_free_keyval`, `MPI_Win_free_keyval`
///
/// # Errors
/// There is no such key for this kind of object, or it is predefined.
pub fn free_keyval(owner: Owner, keyval: &mut Keyval) -> Result<()> {
    attribute::free(owner, keyval)
}

/// Where the predefined attributes are that are numbers: C programs get a pointer to an `int`.
static NUMBERS: [AtomicI32; 8] = [const { AtomicI32::new(0) }; 8];

/// Puts the predefined attributes to their places.
pub(crate) fn define(size: u32, program: Option<u32>) {
    let set = |key: Keyval, value: i32| NUMBERS[key.0 as usize].store(value, Ordering::Relaxed);
    set(Keyval::TAG_UB, TAG_UB);
    set(Keyval::IO, crate::constant::ANY_SOURCE);
    set(Keyval::HOST, PROC_NULL);
    set(Keyval::WTIME_IS_GLOBAL, 0);
    set(Keyval::UNIVERSE_SIZE, size as i32);
    set(Keyval::APPNUM, program.map_or(UNDEFINED, |program| program as i32));
}

/// `MPI_Comm_get_attr`: the value, an address as a number; for predefined attributes that of an `int`.
///
/// # Errors
/// There is no such communicator or key.
pub fn comm_get_attr(comm: Comm, keyval: Keyval) -> Result<Option<usize>> {
    let comm = lookup(comm)?;
    let number = |number: &'static AtomicI32| Ok(Some(std::ptr::from_ref(number).expose_provenance()));
    match keyval {
        Keyval::LAST_USED_CODE => number(&LAST_USED),
        // The launcher has not told which of its programs this is.
        Keyval::APPNUM if NUMBERS[keyval.0 as usize].load(Ordering::Relaxed) == UNDEFINED => Ok(None),
        Keyval(1..=7) => number(&NUMBERS[keyval.0 as usize]),
        _ => comm.attributes().get(Owner::Comm, keyval),
    }
}

/// `MPI_Comm_set_attr`
///
/// # Errors
/// There is no such communicator or key, it is predefined, or the delete function of the old value fails.
pub fn comm_set_attr(comm: Comm, keyval: Keyval, value: usize) -> Result<()> {
    share(comm)?.attributes().set(Owner::Comm, comm.0, keyval, value)
}

/// `MPI_Comm_delete_attr`
///
/// # Errors
/// There is no such communicator, key or attribute, it is predefined, or the delete function fails.
pub fn comm_delete_attr(comm: Comm, keyval: Keyval) -> Result<()> {
    share(comm)?.attributes().delete(Owner::Comm, comm.0, keyval)
}
