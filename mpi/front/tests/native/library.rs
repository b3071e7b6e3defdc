//! Both libraries, built as this test was, beside their headers, and the compiler of C.

#[path = "../../../../cli/src/install/libraries.rs"]
mod libraries;

use nmad_mpi_table::{Abi, header};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tempfile::TempDir;

/// What every program is compiled with.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Both binary interfaces.
pub const ABIS: [Abi; 2] = [Abi::Standard, Abi::Mpich];

/// The name under which programs load the library.
pub fn soname(abi: Abi) -> &'static str {
    match abi {
        Abi::Standard => "libmpi_abi.so.1",
        Abi::Mpich => "libmpi.so.12",
    }
}

/// A folder with both libraries; `standard` and `mpich` in it have the headers.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().expect("a folder");
        let built = built();
        for abi in ABIS {
            let (headers, library) = (folder.path().join(include(abi)), soname(abi));
            let linked = &library[..library.rfind('.').expect("its version")];
            for name in [library, linked] {
                std::os::unix::fs::symlink(built.join(linked), folder.path().join(name)).expect("a link");
            }
            std::fs::create_dir(&headers).expect("a folder");
            std::fs::write(headers.join("mpi.h"), header::text(abi)).expect("a header");
        }
        folder
    };
    FOLDER.get_or_init(make).path()
}

fn include(abi: Abi) -> &'static str {
    match abi {
        Abi::Standard => "standard",
        Abi::Mpich => "mpich",
    }
}

fn built() -> PathBuf {
    // target/PROFILE/deps/this
    let own = std::env::current_exe().expect("this test has a path");
    let profile = own.ancestors().nth(2).expect("a folder of the profile");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = libraries::build(&cargo, profile, Path::new(env!("CARGO_MANIFEST_DIR"))).expect("a name");
    let status = build.arg("--quiet").status().expect("cargo is there");
    assert!(status.success(), "{build:?}");
    profile.to_path_buf()
}

/// Runs a tool to its end and gives back its standard output.
pub fn output(command: &mut Command) -> String {
    let ended = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(ended.status.success(), "{command:?}: {}{}", text(&ended.stdout), text(&ended.stderr));
    text(&ended.stdout)
}

/// Compiles a program in the language `standard` (`c99`, `c++11`) for a binary interface.
pub fn compile(standard: &str, abi: Abi, file: &Path) -> PathBuf {
    compile_all(standard, abi, &[file.to_path_buf()])
}

/// As [`compile`], of several files, which have the name of the first. A program that is run more often is
/// compiled once.
pub fn compile_all(standard: &str, abi: Abi, files: &[PathBuf]) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<PathBuf, Arc<OnceLock<()>>>> = Mutex::new(BTreeMap::new());
    let name = files[0].file_stem().expect("a file").to_string_lossy();
    let program = folder().join(format!("{name}-{standard}-{}", include(abi)));
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let once = compiled.entry(program.clone()).or_default().clone();
    drop(compiled);
    once.get_or_init(|| build(standard, abi, files, &program));
    program
}

fn build(standard: &str, abi: Abi, files: &[PathBuf], program: &Path) {
    let compiler = if standard.starts_with("c++") { "c++" } else { "cc" };
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(WARNINGS).args(["-O1", "-g", "-pthread"]);
    command.arg("-I").arg(folder().join(include(abi))).args(files).arg("-o").arg(program);
    command.arg(folder().join(soname(abi))).arg("-lm").arg(format!("-Wl,-rpath,{}", folder().display()));
    output(&mut command);
}
