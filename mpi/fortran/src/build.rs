//! What the build scripts of both libraries do.

use nmad_mpi_table::{Abi, fortran::binding, groups};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Writes the source, and says how the library is linked: `name` is its own name, `c_library` that of the
/// one that has MPI's functions.
pub(crate) fn write(abi: Abi, name: &str, c_library: &str) -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../src/build.rs");
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    let folder = Path::new(&folder);
    std::fs::write(folder.join("binding.rs"), binding::source(abi))?;
    std::fs::write(folder.join("lengths.rs"), lengths(abi))?;
    named(folder, c_library)?;
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
    // A program's search path is not that of what its libraries need.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--push-state,--no-as-needed");
    println!("cargo::rustc-cdylib-link-arg={}", folder.join(c_library).display());
    println!("cargo::rustc-cdylib-link-arg=-Wl,--pop-state");
    Ok(())
}

/// How long texts may be, with the zero at their end.
fn lengths(abi: Abi) -> String {
    let mut text = String::new();
    let group = groups().iter().find(|group| group.name == "length").expect("constants.txt has the lengths");
    for constant in &group.constants {
        let (name, number) = (constant.name(), constant.number(abi).unwrap_or_default());
        let name = name.trim_start_matches("MPI_");
        writeln!(text, "#[allow(dead_code)]\npub(crate) const {name}: usize = {number};")
            .expect("strings take everything");
    }
    text
}

/// An empty library of that name. Cargo does not link one shared library with another that it builds; the
/// linker takes no more from it than the name, and the symbols are found when a program starts.
fn named(folder: &Path, c_library: &str) -> std::io::Result<()> {
    let source = folder.join("empty.c");
    std::fs::write(&source, "")?;
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-shared", "-nostdlib", "-fPIC"]).arg(format!("-Wl,-soname,{c_library}"));
    let status = command.arg(&source).arg("-o").arg(folder.join(c_library)).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(std::io::Error::other(format!("{command:?} ended with {status}"))),
        Err(error) => Err(std::io::Error::other(format!("cannot run the C compiler {compiler}: {error}"))),
    }
}
