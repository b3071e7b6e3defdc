//! PMIx, by which Open MPI's `mpirun` (`prterun`) and `srun --mpi=pmix` tell ranks about their job.
//!
//! Only the interface of its client library is stable, not what it says to the launcher, so the library is
//! loaded when a launcher asks for it (`PMIX_RANK`), and nobody else needs it. `library` calls it, `find`
//! knows where it may lie. What ranks tell each other through it is in `bootstrap/pmix.rs`.

pub mod find;
#[allow(unsafe_code)]
pub mod library;
