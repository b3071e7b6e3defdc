//! The command `nmad`; under the name `mpiexec` or `mpirun` it is a launcher only.

use std::process::ExitCode;

fn main() -> ExitCode {
    nmad_cli::main(std::env::args_os())
}
