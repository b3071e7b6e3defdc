//! The modules `mpi` and `mpi_f08` of Fortran. Each compiler, and each of its versions, has a form of its
//! own for them, so they are compiled by the one that the user has: when `nmad install` finds one, or when
//! a wrapper is called with another for the first time.

use super::{Abi, Compiler};
use nmad_mpi_table::fortran::module;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder below a prefix that has the modules of all compilers.
pub(crate) const FOLDER: &str = "lib/nmad/fortran";

/// Compilers that are looked for, in this order.
const COMPILERS: [&str; 6] = ["gfortran", "flang", "flang-new", "ifx", "nvfortran", "ifort"];

/// The library of constants of `mpi_f08` which are not numbers: compilers have them in memory.
pub(super) const LIBRARY: &str = "madmpi_f08";

/// Arguments that the compiler needs for MPI's old ways, one on each line.
const ARGUMENTS: &str = "arguments";

/// The first Fortran compiler that is there.
pub(crate) fn compiler() -> Option<&'static str> {
    COMPILERS.into_iter().find(|name| found(Path::new(name)).is_some())
}

/// The message to a user without a Fortran compiler.
pub(super) fn no_compiler() -> String {
    format!(
        "there is no Fortran compiler: none of {} is in PATH. Install one (on Debian: apt-get install \
         gfortran), or name yours with NMAD_FC=PROGRAM or -fc=PROGRAM",
        COMPILERS.join(", ")
    )
}

/// Where a program is, as a shell would find it.
fn found(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// The modules for one compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Modules {
    /// Where they are.
    pub(super) folder: PathBuf,
    /// What the compiler has to be told beside.
    pub(super) arguments: Vec<String>,
}

impl Modules {
    /// Those in the installation, or in the cache of the user where that cannot be written to; compiled if
    /// they are in neither.
    pub(super) fn of(prefix: &Path, abi: Abi, compiler: &Compiler) -> Result<Modules, String> {
        let program = found(Path::new(&compiler.program)).ok_or_else(|| {
            format!(
                "there is no program {}: it was named as the Fortran compiler, by NMAD_FC or -fc=",
                compiler.program.display()
            )
        })?;
        let name =
            name(abi, compiler, &program).map_err(|error| format!("{}: {error}", program.display()))?;
        let shared = prefix.join(FOLDER).join(&name);
        let own = cache().map(|folder| folder.join(&name));
        if let Some(there) = [Some(&shared), own.as_ref()].into_iter().flatten().find(|path| path.is_dir()) {
            return Ok(read(there));
        }
        let first = match make(&shared, abi, compiler) {
            Ok(modules) => return Ok(modules),
            Err(error) => error,
        };
        match (first, own) {
            (Failure::Folder(..), Some(own)) => make(&own, abi, compiler).map_err(|error| error.text(&own)),
            (error, _) => Err(error.text(&shared)),
        }
    }
}

/// The user's own.
fn cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    Some(base.or_else(|| Some(set("HOME")?.join(".cache")))?.join("nmad/fortran"))
}

/// A name for what this compiler makes of these sources: another version of either has another.
fn name(abi: Abi, compiler: &Compiler, program: &Path) -> io::Result<String> {
    let program = program.canonicalize()?;
    let about = program.metadata()?;
    let mut hasher = DefaultHasher::new();
    (&program, about.len(), about.modified()?, &compiler.arguments, sources(abi)).hash(&mut hasher);
    let file = program.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{file}-{}-{:016x}", abi.word(), hasher.finish()))
}

fn sources(abi: Abi) -> [(&'static str, String); 2] {
    let abi = abi.table();
    [("mpi", module::plain(abi)), ("mpi_f08", module::f08(abi))]
}

/// The modules in a folder.
fn read(folder: &Path) -> Modules {
    let arguments = fs::read_to_string(folder.join(ARGUMENTS)).unwrap_or_default();
    Modules { folder: folder.into(), arguments: arguments.lines().map(String::from).collect() }
}

/// Why there are no modules.
enum Failure {
    /// The folder cannot be written.
    Folder(io::Error),
    /// The compiler does not like them, or cannot be run.
    Compiler(String),
}

impl Failure {
    fn text(&self, folder: &Path) -> String {
        match self {
            Failure::Folder(error) => format!(
                "the Fortran modules of MPI cannot be written to {}: {error}; choose another place with \
                 XDG_CACHE_HOME, or have `nmad install` run by who may write there",
                folder.display()
            ),
            Failure::Compiler(text) => format!("the Fortran modules of MPI cannot be compiled: {text}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Folder(error)
    }
}

/// Compiles them in a folder beside the one in which they are then found as a whole: several wrappers may
/// be at it at the same time.
fn make(folder: &Path, abi: Abi, compiler: &Compiler) -> Result<Modules, Failure> {
    let parent = folder.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent)?;
    // As open to readers as other folders.
    let mode = fs::Permissions::from_mode(0o755);
    let work = tempfile::Builder::new().prefix(".").permissions(mode).tempdir_in(parent)?;
    compile(work.path(), abi, compiler)?;
    match fs::rename(work.path(), folder) {
        Err(_) if folder.is_dir() => {}
        renamed => renamed.map_err(Failure::Folder)?,
    }
    Ok(read(folder))
}

fn compile(work: &Path, abi: Abi, compiler: &Compiler) -> Result<(), Failure> {
    for (name, source) in sources(abi) {
        let file = format!("{name}.f90");
        fs::write(work.join(&file), source)?;
        call(work, compiler, &["-fPIC", "-c", &file])?;
        fs::remove_file(work.join(&file))?;
    }
    let library = format!("lib{LIBRARY}.a");
    let archiver = Compiler { program: "ar".into(), arguments: Vec::new() };
    call(work, &archiver, &["rcs", &library, "mpi_f08.o"])?;
    // A program that passes buffers of several types to one function without a module is no mistake.
    let (probe, mismatch) = ("probe.f90", "-fallow-argument-mismatch");
    fs::write(work.join(probe), "end\n")?;
    let takes = call(work, compiler, &[mismatch, "-c", probe]).is_ok();
    fs::write(work.join(ARGUMENTS), if takes { format!("{mismatch}\n") } else { String::new() })?;
    for rest in ["mpi.o", "mpi_f08.o", "probe.o", probe] {
        let _ = fs::remove_file(work.join(rest));
    }
    Ok(())
}

fn call(work: &Path, compiler: &Compiler, words: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(&compiler.program);
    command.args(&compiler.arguments).args(words).current_dir(work);
    let ended = command
        .output()
        .map_err(|error| Failure::Compiler(format!("cannot run {}: {error}", compiler.program.display())))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let first: Vec<&str> = said.lines().take(12).collect();
    Err(Failure::Compiler(format!("{command:?} ended with {}:\n{}", ended.status, first.join("\n"))))
}

/// Compiles the modules of both interfaces into an installation, with the compiler that is there; its name.
pub(crate) fn install(prefix: &Path) -> Result<Option<&'static str>, String> {
    let Some(name) = compiler() else { return Ok(None) };
    let compiler = Compiler { program: name.into(), arguments: Vec::new() };
    for abi in [Abi::Standard, Abi::Mpich] {
        Modules::of(prefix, abi, &compiler)?;
    }
    Ok(Some(name))
}
