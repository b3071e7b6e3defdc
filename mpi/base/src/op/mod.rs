//! Reduction operators: what the predefined ones do to which types, and those that programs make.
//!
//! An operator works on memory of one process: `inout[i] = input[i] op inout[i]`. Which process combines
//! what with whom is decided above; this module knows datatypes, and no message, communicator or handle
//! table.
#![allow(unsafe_code)]

mod kernel;
mod number;
mod predefined;
#[cfg(test)]
pub mod tests;
mod wide;

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

pub use predefined::Predefined;

use crate::datatype::{Basic, Datatype};
use crate::error::{Class, Result};
use kernel::Operands;
use nmad_engine::memory::copy;
use nmad_engine::memory::together::{Kind, LEAST, together};

/// What a program's operator does: left operands, right operands and results, number of elements, their type.
pub type Function = dyn Fn(*const c_void, *mut c_void, i64, &Datatype) + Send + Sync;

/// Fewer elements are less than what cores share: none has more than 32 bytes.
const FEW: usize = (LEAST / 32) as usize;

/// A reduction operator: cheap to clone.
#[derive(Clone)]
pub enum Op {
    /// One of the standard's.
    Predefined(Predefined),
    /// One that the program made.
    User(Arc<UserOp>),
}

/// An operator that the program made.
pub struct UserOp {
    function: Box<Function>,
    commutes: bool,
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Predefined(op) => f.write_str(op.name()),
            Op::User(user) => write!(f, "user operator (commutes: {})", user.commutes),
        }
    }
}

impl Op {
    /// `MPI_Op_create`. The function must be associative; operands change places only if it commutes.
    pub fn new(function: Box<Function>, commutes: bool) -> Op {
        Op::User(Arc::new(UserOp { function, commutes }))
    }

    /// Whether operands may change places.
    pub fn is_commutative(&self) -> bool {
        match self {
            Op::Predefined(op) => op.is_commutative(),
            Op::User(user) => user.commutes,
        }
    }

    /// Whether the program made it.
    pub fn is_user(&self) -> bool {
        matches!(self, Op::User(_))
    }

    /// Whether both are the same operator.
    pub fn is_same(&self, other: &Op) -> bool {
        match (self, other) {
            (Op::Predefined(a), Op::Predefined(b)) => a == b,
            (Op::User(a), Op::User(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Whether a reduction may use it on this type. Operators of programs are believed to know their types.
    ///
    /// # Errors
    /// Class OP if not: the operator does not allow the type, or is for accumulates into windows only.
    #[inline]
    pub fn check(&self, datatype: &Datatype) -> Result<()> {
        match self {
            Op::Predefined(op) => match operand(datatype) {
                Some(basic) if op.allows(basic) && !op.is_for_windows_only() => Ok(()),
                basic => Err(refuse(*op, basic)),
            },
            Op::User(_) => Ok(()),
        }
    }

    /// `inout[i] = input[i] op inout[i]` for `count` elements. MPI_REPLACE copies elements of any type,
    /// MPI_NO_OP does nothing.
    ///
    /// # Errors
    /// Class OP if a predefined operator does not allow the type.
    ///
    /// # Safety
    /// Both addresses are buffers of `count` elements as the standard asks, that of `inout` writable;
    /// they do not overlap.
    pub unsafe fn reduce(
        &self,
        input: *const c_void,
        inout: *mut c_void,
        count: i64,
        datatype: &Datatype,
    ) -> Result<()> {
        let op = match self {
            Op::User(user) => {
                (user.function)(input, inout, count, datatype);
                return Ok(());
            }
            Op::Predefined(Predefined::NoOp) => return Ok(()),
            Op::Predefined(Predefined::Replace) => {
                // SAFETY: the caller's promise.
                unsafe { replace(input, inout, count, datatype) };
                return Ok(());
            }
            Op::Predefined(op) => *op,
        };
        match operand(datatype) {
            Some(basic) if op.allows(basic) => {
                // SAFETY: the caller's promise, and the operator allows the type.
                unsafe { op.reduce(basic, input, inout, count) };
                Ok(())
            }
            basic => Err(refuse(op, basic)),
        }
    }
}

impl Predefined {
    /// As [`Op::reduce`], of elements of a type that the operator [allows](Predefined::allows); not
    /// MPI_REPLACE or MPI_NO_OP.
    ///
    /// # Safety
    /// As [`Op::reduce`].
    pub unsafe fn reduce(self, basic: Basic, input: *const c_void, inout: *mut c_void, count: i64) {
        let operands = Operands { input, inout, count: usize::try_from(count).unwrap_or(0) };
        if operands.count < FEW {
            // SAFETY: the caller's promise.
            return unsafe { kernel::reduce(self, basic, &operands) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.reduce_many(basic, operands) };
    }

    /// The same of many elements, which cores that are idle share.
    ///
    /// # Safety
    /// As [`Op::reduce`].
    #[cold]
    unsafe fn reduce_many(self, basic: Basic, operands: Operands) {
        let extent = basic.extent() as u64;
        together(Kind::Reduce, operands.count as u64, extent, &|part| {
            let part = operands.part(part.start, part.end, extent);
            // SAFETY: the caller's promise; pieces have no element in common.
            unsafe { kernel::reduce(self, basic, &part) };
        });
    }
}

/// The basic type whose numbers a predefined operator sees; none of a derived type.
#[inline]
fn operand(datatype: &Datatype) -> Option<Basic> {
    datatype.basic().or_else(|| datatype.f90_basic())
}

#[cold]
fn refuse(op: Predefined, basic: Option<Basic>) -> crate::error::Error {
    let name = op.name();
    Class::OP.error(match basic {
        Some(_) if op.is_for_windows_only() => format!("{name} is for accumulates into windows only"),
        Some(basic) => format!("{name} does not work on {}", basic.name()),
        None => format!("{name} works on predefined datatypes only: make an operator for the derived one"),
    })
}

/// # Safety
/// As [`Op::reduce`].
unsafe fn replace(input: *const c_void, inout: *mut c_void, count: i64, datatype: &Datatype) {
    datatype.for_each_run(count, |run| {
        let offset = run.offset as isize;
        let (from, to) = (input.wrapping_byte_offset(offset), inout.wrapping_byte_offset(offset));
        // SAFETY: the walk shows memory of the elements, which the caller promised.
        unsafe { copy(from.cast::<u8>(), to.cast::<u8>(), run.len as usize) };
    });
}
