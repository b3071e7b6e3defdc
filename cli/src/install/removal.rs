//! `nmad uninstall`: removes what an installation has written down that it put there, and nothing else.

use clap::Args;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use super::{MANIFEST, Place};
use crate::compile::modules;
use crate::output::{complain, say_line};

const EXAMPLES: &str = "\
Examples:
  nmad uninstall --prefix ~/.local    removes the files that `nmad install --prefix ~/.local` put there

Folders that are empty afterwards are removed too; the prefix itself stays.";

/// Remove what nmad install has put into a folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    place: Place,
}

/// Removes the files and tells which.
pub(crate) fn main(args: &UninstallArgs) -> ExitCode {
    match args.place.root().and_then(|root| remove(&root)) {
        Ok(count) => say_line(format_args!("{count} files removed")),
        Err(error) => return complain("uninstall", &error, 1),
    }
    ExitCode::SUCCESS
}

/// Paths below the prefix that an installation there has written down.
pub(super) fn installed(root: &Path) -> Option<BTreeSet<PathBuf>> {
    let text = fs::read_to_string(root.join(MANIFEST)).ok()?;
    let is_below = |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
    Some(text.lines().map(PathBuf::from).filter(is_below).collect())
}

/// Removes what an installation that failed has made, the latest first.
pub(super) fn take_back(made: &[PathBuf]) {
    for path in made.iter().rev() {
        let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
    }
}

fn remove(root: &Path) -> Result<usize, String> {
    let paths = installed(root).ok_or_else(|| {
        format!("there is no {}: nothing was installed with this prefix", root.join(MANIFEST).display())
    })?;
    let mut count = 0;
    // What `mpifort` has made there.
    let made = root.join(modules::FOLDER);
    let _ = fs::remove_dir_all(&made).and_then(|()| fs::remove_dir(root.join("lib/nmad")));
    for path in &paths {
        match fs::remove_file(root.join(path)) {
            Ok(()) => count += 1,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot remove {}: {error}", root.join(path).display())),
        }
    }
    let folders: BTreeSet<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    // The deepest ones first; those that hold something else stay.
    for folder in folders.into_iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        let _ = fs::remove_dir(root.join(folder));
    }
    Ok(count)
}
