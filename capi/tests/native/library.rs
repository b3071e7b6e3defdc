//! The library, built as this test was, and the compiler of C.

#[path = "../../../cli/src/install/libraries.rs"]
mod libraries;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// What every program is compiled with. The header must be clean C99 and C++.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// A folder of this package.
pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A folder with the library under all of its names.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["libnmad.so".to_string(), soname()] {
            std::os::unix::fs::symlink(built(), folder.path().join(name)).expect("a link");
        }
        folder
    };
    FOLDER.get_or_init(make).path()
}

/// The name under which programs load it.
pub fn soname() -> String {
    let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
    if major == "0" { format!("libnmad.so.0.{minor}") } else { format!("libnmad.so.{major}") }
}

fn built() -> PathBuf {
    // target/PROFILE/deps/this
    let own = std::env::current_exe().expect("this test has a path");
    let profile = own.ancestors().nth(2).expect("a folder of the profile");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = libraries::build(&cargo, profile, Path::new(env!("CARGO_MANIFEST_DIR"))).expect("a name");
    let status = build.arg("--quiet").status().expect("cargo is there");
    assert!(status.success(), "{build:?}");
    profile.join("libnmad.so")
}

/// Runs a tool to its end and gives back its standard output.
pub fn output(command: &mut Command) -> String {
    let ended = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(ended.status.success(), "{command:?}: {}{}", text(&ended.stdout), text(&ended.stderr));
    text(&ended.stdout)
}

/// Compiles a program in the language `standard` (`c99`, `c++11`) and links it with the library.
pub fn compile(standard: &str, file: &Path) -> PathBuf {
    let compiler = if standard.starts_with("c++") { "c++" } else { "cc" };
    let name = file.file_stem().expect("a file").to_string_lossy();
    let program = folder().join(format!("{name}-{standard}"));
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(WARNINGS).args(["-O1", "-g", "-pthread"]);
    command.arg("-I").arg(source("include")).arg(file).arg("-o").arg(&program);
    command.arg("-L").arg(folder()).arg("-lnmad").arg(format!("-Wl,-rpath,{}", folder().display()));
    output(&mut command);
    program
}

/// Whether this tool is there.
pub fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|ended| ended.status.success())
}
