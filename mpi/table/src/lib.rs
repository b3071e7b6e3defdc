//! The one table of MPI: its functions (`functions.txt`) and constants (`constants.txt`), and what is made
//! from them: both `mpi.h` ([`header`]), the functions of the fronts ([`wrapper`]), the symbols of the
//! shared libraries ([`exports`]), the translation of numbers ([`numbers`]), and what Fortran needs
//! ([`fortran`]). Build scripts write what is compiled here, the command `nmad` the headers and the modules
//! of Fortran. This crate knows no MPI but its names and numbers.

#![forbid(unsafe_code)]

mod argument;
mod constant;
mod ctype;
pub mod exports;
pub mod fortran;
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
