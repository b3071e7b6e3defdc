//! What the table of functions cannot say: functions of the program, pointers to pointers, answers of which
//! some may be missing. Arguments are translated as in all wrappers; places for answers are as C gave them.

mod attribute;
mod callback;
mod completion;
mod conversion;
mod datarep;
mod dynamic;
mod environment;
mod fault;
mod info;
mod query;
mod reduction;
mod status;
mod tool;
mod topology;
mod types;

pub(crate) use attribute::*;
pub(crate) use callback::*;
pub(crate) use completion::*;
pub(crate) use conversion::*;
pub(crate) use datarep::*;
pub(crate) use dynamic::*;
pub(crate) use environment::*;
pub(crate) use fault::*;
pub(crate) use info::*;
pub(crate) use query::*;
pub(crate) use reduction::*;
pub(crate) use status::*;
pub(crate) use tool::*;
pub(crate) use topology::*;
pub(crate) use types::*;

use std::ffi::c_void;

/// A function of the program, if it is one and not NULL.
///
/// # Safety
/// The address is that of a function of type `F`, or NULL.
unsafe fn function<F: Copy>(address: *const c_void) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
    // SAFETY: the caller says so.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy::<*const c_void, F>(&address) })
}

/// A value that a function of the program gets back: it may be used by any thread.
#[derive(Clone, Copy)]
struct Word(usize);

impl Word {
    fn get(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0)
    }
}
