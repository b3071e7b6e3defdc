//! Reduction operators.

use crate::error::{Class, Result};
use crate::handle::{Op, Type};
use crate::memory;
use crate::objects::{committed, free_operator, hand_out_operator, operator};
use crate::op::{Function, Op as Operator};
use std::ffi::c_void;

/// `MPI_Op_create`. The front translates the handle of the type with [`super::type_handle`].
pub fn op_create(function: Box<Function>, commutes: bool) -> Op {
    hand_out_operator(Operator::new(function, commutes))
}

/// `MPI_Op_free`
///
/// # Errors
/// There is no such operator, or it is predefined.
pub fn op_free(op: &mut Op) -> Result<()> {
    free_operator(op)
}

/// `MPI_Op_commutative`
///
/// # Errors
/// There is no such operator.
pub fn op_commutative(op: Op) -> Result<bool> {
    Ok(operator(op)?.is_commutative())
}

/// `MPI_Reduce_local`
///
/// # Errors
/// There is no such type or operator, they do not fit together, the count is negative, or
/// there is no memory at one of the addresses, or the same at both.
pub fn reduce_local(
    input: *const c_void,
    inout: *mut c_void,
    count: i64,
    datatype: Type,
    op: Op,
) -> Result<()> {
    let (op, datatype) = (operator(op)?, committed(datatype)?);
    op.check(datatype)?;
    if count < 0 {
        return Err(Class::COUNT.error(format!("the count is {count}: it must not be negative")));
    }
    let first = datatype.first(count);
    memory::check_buffers((input, first), (inout, first))?;
    if count == 0 { Ok(()) } else { memory::reduce(&op, input, inout, (count, datatype)) }
}
