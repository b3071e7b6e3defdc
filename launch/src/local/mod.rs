//! The launcher of one host: starts the ranks of a [`Job`] here and stays until the last one is gone.
//!
//! One thread, one `poll(2)` loop ([`run`](run())), and around it one file for each thing that can be
//! ready: signals, the ranks' PMI connections, their output, our standard input. It knows processes and
//! the PMI server; it must never know what ranks say to each other, nor parse a command line.
//!
//! No rank outlives its launcher: each has a process group of its own, dies with us by
//! `PR_SET_PDEATHSIG`, and a guard process kills what is left of the groups if we are killed.

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

/// What the names of our jobs begin with; ranks know our launcher by it.
pub(crate) const JOB_PREFIX: &str = "nmad-";

/// What the launcher's own lines on standard error begin with.
pub(crate) const SPEAKER: &str = "nmad";
