//! Bootstrap of NewMadeleine jobs: ranks learn their numbers and each other's addresses.
//!
//! This layer stands alone, below the session and beside the engine. It answers three questions of a
//! starting process (which rank am I, what do the others want me to know, who shares my node) and holds
//! the other side too: a local launcher that starts ranks and answers the same questions. It must never
//! know what a rail, a message or a profile is: what ranks tell each other here are strings.
//!
//! - [`bootstrap()`] picks the way into the job ([`Bootstrap`]): PMI-1 under Hydra's `mpiexec`, Slurm's
//!   `srun --mpi=pmi2` and our own launcher; PMIx under Open MPI's `mpirun` and `srun --mpi=pmix`; a job of
//!   one process without a launcher.
//! - [`run`] starts a [`Job`] on this machine, on several hosts that a command can be prefixed into, or on
//!   other machines ([`remote`]).
//! - `cli` (a feature) is the command line over it, the same for `nmad run` and `mpiexec`.
//!
//! The folders: `bootstrap/` is a rank's face, `pmi/` the wire and both of its ends (the server does no
//! I/O), `pmix/` the PMIx library, `local/` the launcher around one `poll(2)` loop, `remote/` the one of
//! several machines with its agents, `binding/` deals processors out to ranks. `os.rs` and
//! `pmix/library.rs` have all of the `unsafe` code.
//!
//! Ranks may ask for further processes, which are a job of their own, on one machine; jobs meet at a
//! [`port`].
#![deny(unsafe_code)]

pub mod binding;
pub mod bootstrap;
#[cfg(feature = "cli")]
pub mod cli;
mod error;
pub mod initial_errhandler;
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
pub mod variables;

pub use bootstrap::{Bootstrap, bootstrap};
pub use error::LaunchError;
pub use local::{
    ExitReport, Host, Inherit, Job, Output, Placement, Program, RankEnd, RankStatus, Stdin, run,
};
pub use machine::host_name;
pub use secret::Secret;
