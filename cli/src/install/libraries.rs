//! The one build of all libraries that an installation has. Tests of other packages, which use the libraries,
//! include this file, so that they share that build.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

/// The packages of the libraries, and that of `nmad`: all of them see their dependencies with the same
/// features, which are built once.
const PACKAGES: [&str; 6] = [
    "nmad-c",
    "nmad-cli",
    "nmad-mpi-standard",
    "nmad-mpi-mpich",
    "nmad-fortran-standard",
    "nmad-fortran-mpich",
];

/// The call of cargo that builds them into `folder`, which is named after its profile (`target/debug`), from
/// the source in `source`. None: the folder has no such name.
pub fn build(cargo: &OsStr, folder: &Path, source: &Path) -> Option<Command> {
    let profile = match folder.file_name()?.to_str()? {
        "debug" => "dev",
        name => name,
    };
    let mut command = Command::new(cargo);
    command.args(["build", "--lib", "--profile", profile]);
    PACKAGES.iter().for_each(|package| _ = command.args(["-p", package]));
    command.arg("--target-dir").arg(folder.parent()?).current_dir(source);
    // Variables that cargo sets for programs that it runs. The build script of ring depends on them: with
    // other values cargo would compile ring again, and all that depends on it.
    let is_of_cargo = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_") || name == "OUT_DIR"
    };
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(is_of_cargo)
        .for_each(|name| _ = command.env_remove(name));
    Some(command)
}
