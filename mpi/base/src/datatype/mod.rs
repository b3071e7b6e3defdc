//! Datatypes: which bytes of memory a message is made of, and what they mean.
//!
//! A [`Datatype`] is made from others by the constructors of the standard, knows its bounds, and says
//! where the bytes of any number of elements lie ([`Datatype::for_each_run`], [`Datatype::run`] if they
//! are one piece). What travels as bytes is decided above; this module never sees a message, a
//! communicator or a handle table.
#![allow(unsafe_code)]

mod array;
mod basic;
mod bounds;
mod construct;
mod contents;
mod copy;
mod count;
mod external;
mod fortran;
mod layout;
mod matching;
mod pack;
mod portable;
mod scalar;
mod signature;
mod structure;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod walk;

pub use array::{DEFAULT_ARGUMENT, Distribution, Order, Share};
pub use basic::{Basic, Family};
pub use contents::IntegerKind;
pub use external::EXTERNAL32;
pub use fortran::Fortran;
pub use layout::{Run, Strided};
pub use matching::{TypeClass, f90_float, f90_integer, match_size, value_index};
pub use scalar::Scalar;
pub use signature::Signature;
pub use tree::{Combiner, Contents, Datatype, Form};
