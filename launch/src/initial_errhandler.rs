//! The initial error handler of MPI, which launchers pass to the MPI library of a rank (MPI 4.1, section
//! 11.5).

/// The variable that contains its name.
pub const VARIABLE: &str = "NMAD_MPI_INITIAL_ERRHANDLER";

/// The predefined error handlers; the first is the default.
pub const NAMES: [&str; 3] = ["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"];
