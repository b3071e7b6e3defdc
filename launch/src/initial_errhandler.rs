//! The error handler that MPI begins with, as launchers tell it to the MPI library of a rank (MPI 4.1,
//! section 11.5).

/// The variable that names it.
pub const VARIABLE: &str = "NMAD_MPI_INITIAL_ERRHANDLER";

/// The predefined ones; the first counts where none is named.
pub const NAMES: [&str; 3] = ["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"];
