//! Writes the symbols and the numbers, and gives the library the name under which programs load it.

use nmad_mpi_table::{Abi, exports, numbers};

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(format!("{folder}/exports.rs"), exports::source())?;
    std::fs::write(format!("{folder}/numbers.rs"), numbers::source(Abi::Standard))
}
