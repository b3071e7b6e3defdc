//! Runs generated sequences of operations; see the library.

fn main() -> std::process::ExitCode {
    nmad_fuzz::runner::main(&nmad_fuzz::operations_target())
}
