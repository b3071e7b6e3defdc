//! `nmad info --mpi`: what MAD-MPI has of the standard.

use nmad_mpi_table::functions;
use serde::Serialize;

use crate::output::{say_json, say_line};

/// What there is to tell.
#[derive(Serialize)]
struct Mpi {
    /// The version of the standard.
    version: &'static str,
    /// The libraries, and the binary interfaces that they have.
    libraries: [(&'static str, &'static str); 2],
    /// How many functions there are.
    functions: usize,
}

/// Prints it.
pub(super) fn print(json: bool) {
    let mpi = gather();
    if json {
        return say_json("mpi", &mpi);
    }
    say_line(format_args!("MAD-MPI: MPI {}, {} functions", mpi.version, mpi.functions));
    for (library, interface) in mpi.libraries {
        say_line(format_args!("  {library:<18} {interface}"));
    }
}

fn gather() -> Mpi {
    let standard = functions().iter().filter(|function| function.is_standard());
    Mpi {
        version: "5.0",
        libraries: [
            ("libmpi_abi.so.1", "the binary interface of MPI 5"),
            ("libmpi.so.12", "the binary interface of MPICH, also as libmpich.so.12"),
        ],
        functions: standard.map(|function| function.symbols().len()).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_functions_of_the_standard_are_counted() {
        assert_eq!(gather().functions, 664);
    }
}
