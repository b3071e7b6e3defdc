//! The protocol of one-sided communication: puts, gets, accumulates, locks and flushes as messages between
//! the origin of an operation and the process whose memory it accesses.
//!
//! Above the engine, below MAD-MPI and the simulator, which both run it. Here are the frames ([`frame`]),
//! the state of an origin ([`origin`]) and of a target ([`target`]), the places that they access
//! ([`place`]) and the locks that they ask for ([`locks`]). This layer moves no rail and waits for nothing:
//! messages leave and come through a [`Port`]. It knows no type of MPI: an operator and its elements are
//! numbers, whose meaning its user knows ([`Exposed`]). It reads no clock and starts no thread.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod base;
pub mod frame;
mod lanes;
pub mod locks;
pub mod origin;
pub mod place;
mod reaching;
mod serving;
pub mod target;

pub use base::Base;
pub use nmad_engine::{Claims, Outcome, Port};
pub use origin::{Asking, Element, Failure, Flying, Operation, Origin, To};
pub use place::Place;
pub use reaching::Reaching;
pub use target::{Exposed, Fault, Operator, Target};
