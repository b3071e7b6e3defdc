//! MAD-MPI: the Message Passing Interface on NewMadeleine, free of any binary interface.
//!
//! This crate stands on the session and below the *fronts* (`mpi/front/`), which export its functions in the
//! binary interfaces that programs were compiled for. Counts have 64 bits, handles are indices, errors are
//! values; [`api`] has one function for each function of the standard. A point-to-point message is a request
//! of the engine's and nothing else. This layer must never know what a handle looks like in C, which number a
//! front gives to a constant, or what a rail is.
//!
//! Where the standard's own binary interface (MPI 5.0, chapter 20) names a number, the core uses it: tags,
//! ranks, error classes, and in predefined handles its lowest eight bits. So the front of that interface
//! translates by arithmetic.
#![deny(unsafe_code)]

pub mod api;
mod at_hand;
mod attribute;
mod codes;
mod collective;
mod comm;
mod errhandler;
mod fault;
mod file;
pub mod group;
mod hardware;
mod health;
mod info;
#[allow(unsafe_code)]
mod join;
mod lost;
#[allow(unsafe_code)]
mod memory;
mod message;
mod objects;
mod orphans;
mod partitioned;
mod point;
mod raise;
pub mod request;
mod session;
mod sleepers;
mod status;
#[allow(unsafe_code)]
mod table;
mod task;
mod tool;
pub mod topology;
mod window;
#[allow(unsafe_code)]
mod world;

use nmad_mpi_base::{algorithm, shown};
pub use nmad_mpi_base::{constant, datatype, error, handle, op};

pub use error::{Class, Error, Result};
pub use handle::{Comm, Errhandler, File, Group, Info, Keyval, Message, Op, Request, Session, Type, Win};
pub use status::Status;
pub use window::Flavor;
