//! What MAD-MPI computes by itself: datatypes, operators, and the algorithms of collectives as schedules.
//!
//! This crate stands on the engine's description of memory and below the functions of MPI (`mpi/`). The
//! simulation of many ranks (`scale/`) builds and runs the same schedules. It must never know what a session,
//! a communicator or a rail is.
#![deny(unsafe_code)]

pub mod algorithm;
pub mod constant;
pub mod datatype;
pub mod error;
pub mod handle;
pub mod op;
pub mod shown;

pub use error::{Class, Error, Result};
