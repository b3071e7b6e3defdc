//! Operators of the program's.

use super::function;
use crate::{Abi, give};
use nmad_mpi::api;
use nmad_mpi::datatype::{Datatype, Form};
use nmad_mpi::error::{Class, Result};
use std::ffi::c_void;

type User<C, H> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut C, *mut H);

/// Most elements of one call of a function that counts with `int`.
const INT_MAX: i64 = i32::MAX as i64;

pub(crate) fn op_create<A: Abi>(
    form: Form,
    called: *const c_void,
    commute: bool,
    op: *mut A::Handle,
) -> Result<()> {
    let null = || Class::ARG.error("argument user_fn is NULL: a function is needed");
    let made = match form {
        Form::Int => {
            // SAFETY: the program passes an MPI_User_function.
            let called: User<i32, A::Handle> = unsafe { function(called) }.ok_or_else(null)?;
            let in_parts =
                move |input: *const c_void, inout: *mut c_void, count: i64, datatype: &Datatype| {
                    let mut handle = give::datatype::<A>(api::type_handle(datatype));
                    let mut done = 0;
                    while done < count {
                        let mut part = (count - done).min(INT_MAX) as i32;
                        let skip = (done * datatype.extent()) as isize;
                        let (from, to) =
                            (input.cast_mut().wrapping_byte_offset(skip), inout.wrapping_byte_offset(skip));
                        // SAFETY: the core hands operands of `count` elements.
                        unsafe { called(from, to, &mut part, &mut handle) }
                        done += INT_MAX;
                    }
                };
            api::op_create(Box::new(in_parts), commute)
        }
        Form::Large => {
            // SAFETY: the program passes an MPI_User_function_c.
            let called: User<i64, A::Handle> = unsafe { function(called) }.ok_or_else(null)?;
            let whole =
                move |input: *const c_void, inout: *mut c_void, mut count: i64, datatype: &Datatype| {
                    let mut handle = give::datatype::<A>(api::type_handle(datatype));
                    // SAFETY: the core hands operands of `count` elements.
                    unsafe { called(input.cast_mut(), inout, &mut count, &mut handle) }
                };
            api::op_create(Box::new(whole), commute)
        }
    };
    give::value(op, give::op::<A>(made));
    Ok(())
}
