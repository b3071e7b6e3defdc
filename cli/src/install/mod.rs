//! `nmad install`: the command, the libraries, the headers and what a build system wants to know.
//!
//! `content` has the one list of what that is; `origin` finds the files, `place` writes them, `removal` takes
//! them away. Everything is relative to the prefix, so that it can be moved as a whole.

mod content;
mod libraries;
mod origin;
mod place;
mod removal;
mod strip;

use clap::Args;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::compile::modules;
use crate::output::{complain, say_line, tell_user};
use content::{Item, Manual};
use place::Placed;
pub(crate) use removal::{UninstallArgs, main as uninstall};

/// Where an installation writes down what belongs to it.
const MANIFEST: &str = "share/nmad/manifest.txt";

const EXAMPLES: &str = "\
Examples:
  nmad install --prefix ~/.local           command, C library and documents for this user
  nmad install --prefix /usr --destdir pkg for a package: below pkg/usr, to be moved to /usr
  nmad install --prefix ~/dbg --keep-debug with line numbers for debuggers and profilers
  cargo run --release -- install --prefix ~/.local
                                           straight from the source; builds what is missing

What it puts there: bin/nmad with its other names mpiexec, mpirun, mpicc, mpicxx and mpifort, lib/libnmad.so
and include/nmad.h, the libraries and headers of MAD-MPI (libmpi_abi.so.1 and libmpi.so.12), files for
pkg-config and CMake, manual pages, completions for bash, zsh and fish, documents and examples. Where there is
a Fortran compiler, it compiles the modules mpi and mpi_f08. Programs are then built with
  export PKG_CONFIG_PATH=~/.local/lib/pkgconfig
  cc hello.c $(pkg-config --cflags --libs nmad) -o hello
  ~/.local/bin/mpicc ring.c -o ring
The whole prefix may be moved. `nmad uninstall --prefix DIR` removes it again.";

/// Install the command, the C library, its header and what build systems need
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    place: Place,
    /// Overwrite files that another program has put there, such as the mpiexec of another MPI
    #[arg(long)]
    force: bool,
    /// Write no symbolic links, for archives that have none, such as Python wheels
    #[arg(long)]
    no_links: bool,
    /// Keep what only debuggers and profilers read, four fifths of each file; otherwise `strip` takes it away
    #[arg(long)]
    keep_debug: bool,
}

/// Below which folder.
#[derive(Debug, Args)]
struct Place {
    /// Folder that gets bin, lib, include and share
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// Folder that stands for / while a package is made; otherwise the environment's DESTDIR
    #[arg(long, value_name = "DIR")]
    destdir: Option<PathBuf>,
}

impl Place {
    /// The folder to write to.
    fn root(&self) -> Result<PathBuf, String> {
        let path = match self.destdir() {
            Some(folder) => {
                let prefix = std::path::absolute(&self.prefix).map_err(|error| self.unclear(&error))?;
                folder.join(prefix.strip_prefix("/").unwrap_or(&prefix))
            }
            None => self.prefix.clone(),
        };
        std::path::absolute(path).map_err(|error| self.unclear(&error))
    }

    /// The folder that stands for /, if one is said.
    fn destdir(&self) -> Option<PathBuf> {
        let destdir = self.destdir.clone().or_else(|| std::env::var_os("DESTDIR").map(PathBuf::from));
        destdir.filter(|folder| !folder.as_os_str().is_empty())
    }

    fn unclear(&self, error: &std::io::Error) -> String {
        format!("--prefix {}: {error}", self.prefix.display())
    }
}

/// Installs, with these files of the manual by their paths, and tells what.
pub(crate) fn main(args: &InstallArgs, manual: Manual) -> ExitCode {
    let installed = args.place.root().and_then(|root| {
        let items = content::items(manual);
        let files = install(&root, items, !args.no_links, args.force, args.keep_debug)?;
        tell(&root, &files);
        fortran(&root, args);
        Ok(())
    });
    match installed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain("install", &error, 1),
    }
}

/// Installs this build in a folder of this program's own, without its manual and without a word.
pub(crate) fn silently(root: &Path) -> Result<(), String> {
    install(root, content::items(Manual::new()), true, true, false).map(drop)
}

fn install(
    root: &Path,
    items: Vec<Item>,
    links: bool,
    force: bool,
    keep_debug: bool,
) -> Result<Vec<Placed>, String> {
    let mut files = place::prepare(items, links, keep_debug)?;
    let mut paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    paths.insert(MANIFEST);
    let ours = removal::installed(root).unwrap_or_default();
    let is_foreign =
        |path: &&str| root.join(path).symlink_metadata().is_ok() && !ours.contains(Path::new(path));
    if let Some(path) = paths.iter().copied().find(is_foreign).filter(|_| !force) {
        let path = root.join(path);
        return Err(format!(
            "{} is there already and was not installed by nmad; choose another prefix, or --force to \
             overwrite it",
            path.display()
        ));
    }
    let list = list(paths.into_iter());
    files.push(list);
    replace(root, &files, &ours)?;
    // What an older version has left.
    let is_gone = |path: &&PathBuf| !files.iter().any(|file| Path::new(&file.path) == path.as_path());
    ours.iter().filter(is_gone).for_each(|path| drop(std::fs::remove_file(root.join(path))));
    Ok(files)
}

/// Compiles the modules of Fortran, unless this is for another machine. What fails here, `mpifort` tries
/// again.
fn fortran(root: &Path, args: &InstallArgs) {
    let is_elsewhere = args.no_links || args.place.destdir().is_some();
    if is_elsewhere {
        return;
    }
    // Those of an earlier version are of no use any more.
    let _ = std::fs::remove_dir_all(root.join(modules::FOLDER));
    match modules::install(root) {
        Ok(Some(compiler)) => {
            say_line(format_args!("the Fortran modules mpi and mpi_f08 were compiled with {compiler}"))
        }
        Ok(None) => say_line(format_args!(
            "there is no Fortran compiler; once there is one, mpifort compiles the modules mpi and mpi_f08"
        )),
        Err(error) => tell_user(format_args!("nmad install: {error}")),
    }
}

/// The list of what is installed.
fn list<'a>(paths: impl Iterator<Item = &'a str>) -> Placed {
    let sorted: BTreeSet<&str> = paths.collect();
    Placed::list(MANIFEST, sorted.into_iter().collect::<Vec<_>>().join("\n") + "\n")
}

/// Puts `files`, the list among them, where `ours` may be; if that fails, all is as it was.
fn replace(root: &Path, files: &[Placed], ours: &BTreeSet<PathBuf>) -> Result<(), String> {
    let written: Vec<String> = files.iter().map(Placed::before).collect();
    let named = files.iter().map(|file| &*file.path).chain(written.iter().map(|path| &**path));
    // A list of all that there may be goes first: whenever this process is killed, it can be removed.
    let first = list(ours.iter().filter_map(|path| path.to_str()).chain(named));
    let mut made = Vec::new();
    let done = (first.write(root, &mut made).and_then(|()| first.put(root, &mut made)))
        .and_then(|()| files.iter().try_for_each(|file| file.write(root, &mut made)))
        .and_then(|()| files.iter().try_for_each(|file| file.put(root, &mut made)));
    done.inspect_err(|_| {
        removal::take_back(&made);
        let (before, mut made) = (list(ours.iter().filter_map(|path| path.to_str())), Vec::new());
        // Where not even that is possible, the longer list stays.
        let mut again = || before.write(root, &mut made).and_then(|()| before.put(root, &mut made));
        if !ours.is_empty() && again().is_err() {
            removal::take_back(&made);
        }
    })
}

fn tell(root: &Path, files: &[Placed]) {
    say_line(format_args!("installed in {}:", root.display()));
    for file in files {
        say_line(format_args!("  {}", file.path));
    }
    say_line(format_args!(
        "programs are built with PKG_CONFIG_PATH={}/lib/pkgconfig pkg-config --cflags --libs nmad",
        root.display()
    ));
    if cfg!(debug_assertions) {
        tell_user(
            "nmad install: this is a build for debugging; the fast one is that of `cargo build --release`",
        );
    }
}
