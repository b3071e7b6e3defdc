//! Writes the wrappers of all functions.

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(format!("{folder}/wrapper.rs"), nmad_mpi_table::wrapper::source())
}
