//! The launcher of one host: starts the ranks of a [`Job`] and runs until the last one has ended.
//!
//! One thread runs one `poll(2)` loop ([`run`](run())); each kind of descriptor has a file: signals, the
//! ranks' PMI connections, their output, our standard input. This layer knows processes and the PMI server;
//! it must never know the values that ranks exchange, nor parse a command line.
//!
//! No rank outlives its launcher: each has a process group of its own and dies with the launcher by
//! `PR_SET_PDEATHSIG`, and a guard process kills the rest of the groups if the launcher is killed.

pub(crate) mod desk;
pub(crate) mod destination;
pub(crate) mod ending;
pub(crate) mod guard;
pub(crate) mod host;
pub(crate) mod input;
pub(crate) mod job;
pub(crate) mod output;
pub(crate) mod ranks;
mod report;
pub(crate) mod run;
pub(crate) mod signals;
pub(crate) mod spawn;
pub mod stamp;
pub(crate) mod talk;

pub use destination::Output;
pub use host::{Host, Placement};
pub use job::{COUNT_MAX, Inherit, Job, Program, Stdin};
pub use report::{ExitReport, RankEnd, RankStatus};
pub use run::run;

/// Prefix of our job names, by which ranks recognise our launcher.
pub(crate) const JOB_PREFIX: &str = "nmad-";

/// Prefix of the launcher's own lines on standard error.
pub(crate) const SPEAKER: &str = "nmad";
