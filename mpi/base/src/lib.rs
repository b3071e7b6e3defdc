//! The parts of MAD-MPI that need no session: datatypes, operators, groups of ranks in little memory, and the
//! algorithms of collectives as schedules.
//!
//! This crate uses the engine's description of memory and the shared memory of `drivers/`, and is used by the
//! functions of MPI (`mpi/`) and by the simulation of many ranks (`scale/`), which run the same schedules. It
//! knows the numbers of handles, but never what a session, a communicator or a rail is.
#![deny(unsafe_code)]

pub mod algorithm;
pub mod colors;
pub mod constant;
pub mod datatype;
pub mod error;
pub mod handle;
pub mod op;
pub mod sequence;
pub mod shown;
pub mod tree;

pub use error::{Class, Error, Result};
