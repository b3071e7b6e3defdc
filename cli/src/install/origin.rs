//! Where the files of an installation come from: this program, and the libraries that cargo leaves beside it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// This program, wherever it runs from.
pub(super) fn program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("cannot find the path of this program: {error}"))
}

/// A shared library: beside this program, where cargo leaves it, or in `lib` of the prefix that this program
/// was installed in. Under `cargo run`, which builds nothing but the program, it is built first.
pub(super) fn library(stem: &str, loaded: &str) -> Result<PathBuf, String> {
    let program = program()?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    // All libraries by one call of cargo.
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    if let Some(cargo) = cargo() {
        BUILT.get_or_init(|| build(&cargo, folder)).clone()?;
    }
    let beside = folder.join(format!("{stem}.so"));
    let installed = folder.join("../lib").join(loaded);
    let places = [&beside, &installed];
    places.into_iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        format!(
            "there is no {}, and no {}: build the libraries with `cargo build --release` in the folder of \
             the source, then run target/release/nmad install",
            beside.display(),
            installed.display()
        )
    })
}

/// The cargo that has started this program.
fn cargo() -> Option<OsString> {
    let is_ours = std::env::var_os("CARGO_PKG_NAME").is_some_and(|name| name == env!("CARGO_PKG_NAME"));
    std::env::var_os("CARGO").filter(|_| is_ours)
}

/// Builds the libraries as this program was built: with the same profile, into the same folder.
fn build(cargo: &OsString, folder: &Path) -> Result<(), String> {
    let source = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let Some(mut command) = super::libraries::build(cargo, folder, &source) else { return Ok(()) };
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the libraries cannot be built: {command:?} ended with {status}")),
        Err(error) => Err(format!("the libraries cannot be built: {command:?}: {error}")),
    }
}
