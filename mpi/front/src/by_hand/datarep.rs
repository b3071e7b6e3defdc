//! Data representations of files that the program defines: three functions of its own.

use super::{Word, function};
use crate::{Abi, codes, give};
use nmad_mpi::api::{self, Convert, Converted, Extent};
use nmad_mpi::datatype::Form;
use nmad_mpi::error::{Class, Error, Result};
use std::ffi::c_void;

type Short<H> = unsafe extern "C" fn(*mut c_void, H, i32, *mut c_void, i64, *mut c_void) -> i32;
type Long<H> = unsafe extern "C" fn(*mut c_void, H, i64, *mut c_void, i64, *mut c_void) -> i32;
type Length<H> = unsafe extern "C" fn(H, *mut i64, *mut c_void) -> i32;

pub(crate) fn register_datarep<A: Abi>(
    form: Form,
    name: &str,
    read: *const c_void,
    write: *const c_void,
    extent: *const c_void,
    state: usize,
) -> Result<()> {
    let state = Word(state);
    // SAFETY: the program passes a function of this type.
    let Some(length) = (unsafe { function::<Length<A::Handle>>(extent) }) else {
        return Err(Class::ARG.error("argument dtype_file_extent_fn is NULL: a function is needed"));
    };
    let length: Extent = Box::new(move |datatype| {
        let mut extent = 0;
        // SAFETY: the place lives for the call.
        let code = unsafe { length(give::datatype::<A>(datatype), &mut extent, state.get()) };
        answered::<A>(code, "dtype_file_extent").map(|()| extent)
    });
    let convert = |address, what| convert::<A>(form, address, what, state);
    api::register_datarep(name, convert(read, "read_conversion"), convert(write, "write_conversion"), length)
}

/// What a function of the program answered.
fn answered<A: Abi>(code: i32, what: &str) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let class = codes::code_in::<A>(code).class;
    Err(Error::new(class, format!("the {what} function of a data representation answered {code}")))
}

/// A conversion; none: the data are as in memory.
fn convert<A: Abi>(form: Form, address: *const c_void, what: &'static str, state: Word) -> Option<Convert> {
    let called: Box<dyn Fn(Converted) -> Result<i32> + Send + Sync> = match form {
        Form::Int => {
            // SAFETY: the program passes a function of this type, or NULL.
            let short = unsafe { function::<Short<A::Handle>>(address) }?;
            Box::new(move |it: Converted| {
                let many =
                    || Class::COUNT.error(format!("{} elements are too many for {what}: use _c", it.count));
                let count = i32::try_from(it.count).map_err(|_| many())?;
                let datatype = give::datatype::<A>(it.datatype);
                // SAFETY: the program's function, with buffers for that many elements.
                Ok(unsafe { short(it.memory, datatype, count, it.file, it.position, state.get()) })
            })
        }
        Form::Large => {
            // SAFETY: the program passes a function of this type, or NULL.
            let long = unsafe { function::<Long<A::Handle>>(address) }?;
            Box::new(move |it: Converted| {
                let datatype = give::datatype::<A>(it.datatype);
                // SAFETY: the program's function, with buffers for that many elements.
                Ok(unsafe { long(it.memory, datatype, it.count, it.file, it.position, state.get()) })
            })
        }
    };
    Some(Box::new(move |it| answered::<A>(called(it)?, what)))
}
