//! Writes the symbols, and gives the library its name and that of the library of C that it needs.

#[path = "../src/build.rs"]
mod build;

fn main() -> std::io::Result<()> {
    build::write(nmad_mpi_table::Abi::Mpich, "libmpifort.so.12", "libmpi.so.12")
}
