//! The one table of MPI: its functions (`functions.txt`) and constants (`constants.txt`), and what is made
//! from them: both `mpi.h` ([`header`]), the functions of the fronts ([`wrapper`]), the symbols of the
//! shared libraries ([`exports`]), and the translation of numbers ([`numbers`]). The fronts' build scripts
//! write the last three, the command `nmad` the first. This crate knows no MPI but its names and numbers.

#![forbid(unsafe_code)]

mod argument;
mod constant;
mod ctype;
pub mod exports;
mod function;
pub mod header;
pub mod numbers;
mod place;
pub mod wrapper;

pub use argument::{Argument, Direction, Length};
pub use constant::{Constant, Group, groups};
pub use ctype::Form;
pub use function::{Function, functions};

/// A binary interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abi {
    /// That of MPI 5: `libmpi_abi.so.1`.
    Standard,
    /// That of MPICH and its descendants: `libmpi.so.12`.
    Mpich,
}
