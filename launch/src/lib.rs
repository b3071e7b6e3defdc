//! Bootstrap of NewMadeleine jobs: ranks get their numbers and exchange their addresses.
//!
//! This layer stands alone, below the session and beside the engine. It gives a starting process its rank,
//! the values that other ranks publish, and the ranks of its node. It also contains the other side: a
//! launcher that starts ranks and serves them the same information. It must never know rails, messages or
//! profiles; the exchanged values are strings.
//!
//! - [`bootstrap()`] joins the job ([`Bootstrap`]): by PMI-1 under Hydra's `mpiexec`, Slurm's `srun
//!   --mpi=pmi2` and our own launcher; by PMIx under Open MPI's `mpirun` and `srun --mpi=pmix`; as a job of
//!   one process without a launcher.
//! - [`run`] starts a [`Job`] on this machine, in virtual hosts that a prefix command enters, or on other
//!   machines ([`remote`]).
//! - `cli` (a feature) is the command line of `nmad run` and `mpiexec`.
//!
//! The folders: `bootstrap/` is the interface for ranks, `pmi/` the PMI protocol with client and server
//! (the server does no I/O), `pmix/` the PMIx library, `local/` the launcher of one machine around one
//! `poll(2)` loop, `remote/` the launcher of several machines with its agents, `binding/` assigns
//! processors to ranks. All `unsafe` code is in `os.rs` and `pmix/library.rs`.
//!
//! Ranks may spawn further processes, which form a job of their own on the same machine. Jobs connect to
//! each other at a [`port`].
#![deny(unsafe_code)]

pub mod binding;
pub mod bootstrap;
#[cfg(feature = "cli")]
pub mod cli;
pub mod deaths;
mod error;
pub mod local;
mod machine;
pub mod mapping;
pub mod names;
#[allow(unsafe_code)]
mod os;
pub mod pmi;
mod pmix;
pub mod port;
mod reach;
pub mod remote;
mod secret;

pub use bootstrap::{Bootstrap, bootstrap, refuse};
pub use error::LaunchError;
pub use local::{
    ExitReport, Host, Inherit, Job, Output, Placement, Program, RankEnd, RankStatus, Stdin, run,
};
pub use machine::host_name;
pub use secret::Secret;
