//! PMIx, through which Open MPI's `mpirun` (`prterun`) and `srun --mpi=pmix` give ranks information about
//! their job.
//!
//! Only the interface of the client library is stable, not its protocol with the launcher, so the library
//! is loaded when a launcher needs it (`PMIX_RANK`). `library` calls it, `find` finds it.
//! `bootstrap/pmix.rs` exchanges values of ranks through it.

pub mod find;
#[allow(unsafe_code)]
pub mod library;
