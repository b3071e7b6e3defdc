//! The launcher under the name that scripts know.

use std::process::ExitCode;

fn main() -> ExitCode {
    nmad_cli::mpiexec("mpiexec", std::env::args_os().skip(1))
}
