//! Collectives as schedules: graphs of messages, copies and reductions that progress advances.
//!
//! A collective is described by a [`choice::Problem`]. One of its [`choice::Algorithm`]s, the one that is
//! predicted to end first, adds the part of this rank to a [`schedule::Builder`]. The finished
//! [`schedule::Schedule`] knows buffers by name only; a [`run::Run`] binds them to addresses and is
//! advanced by whoever makes progress. So blocking is start and wait, nonblocking is start, persistent is
//! the same run again.
//!
//! This layer stands on a [`transport::Transport`] between the parties of one communicator. It must never
//! know what a communicator, a session or a rail is. Beside the calls of MPI, the simulation of many ranks
//! (`scale/`) builds and runs schedules.
// `len` is a length of data in bytes; `is_empty` would have no caller.
#![allow(clippy::len_without_is_empty)]

pub mod alias;
pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod board;
pub mod check;
pub mod choice;
mod compare;
pub mod cost;
pub mod gather;
pub mod halving;
pub mod inter;
pub mod levels;
pub mod line;
#[allow(unsafe_code)]
pub mod memory;
pub mod neighbor;
pub mod operands;
#[allow(unsafe_code)]
pub mod operator;
pub mod place;
pub mod pool;
pub mod reduce;
pub mod reduce_scatter;
mod registry;
pub mod run;
pub mod scan;
pub mod scatter;
pub mod schedule;
pub mod team;
pub mod transport;
pub mod tree;

#[cfg(test)]
mod tests;
