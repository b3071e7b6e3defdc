//! Putting files in place. All are written under other names first and then renamed, so that programs that
//! run keep what they have, nothing is ever half there, and what fails leaves what was there before.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::content::{Item, What};
use super::{origin, strip};

const PLAIN: u32 = 0o644;
const EXECUTABLE: u32 = 0o755;

/// What another name of a program looks like where there are no links.
fn script(means: &str) -> String {
    format!("#!/bin/sh\nexec \"${{0%/*}}/nmad\" {means} \"$@\"\n")
}

/// Files with the bytes that will be in them.
pub(super) struct Placed {
    pub(super) path: String,
    body: Body,
}

/// What happens to what only debuggers read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbols {
    Kept,
    Stripped,
}

enum Body {
    Copy(PathBuf, Symbols),
    Link(String),
    Bytes(Vec<u8>, u32),
}

/// Finds out what each item is made of; nothing is written yet. Without `links` other names of programs are
/// scripts, a library has the name that programs load only, and the linker gets a script that names it.
pub(super) fn prepare(items: Vec<Item>, links: bool, keep_debug: bool) -> Result<Vec<Placed>, String> {
    let mut placed = Vec::new();
    let symbols = if keep_debug { Symbols::Kept } else { Symbols::Stripped };
    for Item { path, what } in items {
        let body = match what {
            What::Program => Body::Copy(origin::program()?, symbols),
            What::Name { .. } if links => Body::Link("nmad".into()),
            What::Name { means } => Body::Bytes(script(means).into(), EXECUTABLE),
            What::Library { stem, loaded } => {
                let body = Body::Copy(origin::library(stem, &loaded)?, symbols);
                let path = if links { path } else { format!("lib/{loaded}") };
                placed.push(Placed { path, body });
                continue;
            }
            What::Link { of } if links => Body::Link(of),
            What::Link { .. } if !path.ends_with(".so") => continue,
            What::Link { of } => Body::Bytes(format!("INPUT({of})\n").into(), PLAIN),
            What::Text(text) => Body::Bytes(text.into(), PLAIN),
        };
        placed.push(Placed { path, body });
    }
    Ok(placed)
}

impl Placed {
    /// A list of what is installed.
    pub(super) fn list(path: &str, lines: String) -> Placed {
        Placed { path: path.into(), body: Body::Bytes(lines.into(), PLAIN) }
    }

    /// The path below the prefix that it has until it is put in place.
    pub(super) fn before(&self) -> String {
        let path = Path::new(&self.path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!(".{name}.{}", std::process::id())).to_string_lossy().into_owned()
    }

    /// Writes it below `root` under its name before; folders and files that were not there are added to
    /// `made`, in this order.
    pub(super) fn write(&self, root: &Path, made: &mut Vec<PathBuf>) -> Result<(), String> {
        let target = root.join(&self.path);
        let folder = target.parent().unwrap_or(root);
        let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).map_err(|error| refused("make the folder", folder, &error))?;
            made.push(folder.into());
        }
        if target.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Err(refused("write", &target, &io::ErrorKind::IsADirectory.into()));
        }
        let new = root.join(self.before());
        made.push(new.clone());
        self.write_to(&new).map_err(|error| refused("write", &target, &error))
    }

    /// Gives it its name; it is added to `made` if nothing of that name was there.
    pub(super) fn put(&self, root: &Path, made: &mut Vec<PathBuf>) -> Result<(), String> {
        let target = root.join(&self.path);
        let is_new = target.symlink_metadata().is_err();
        fs::rename(root.join(self.before()), &target).map_err(|error| refused("write", &target, &error))?;
        made.extend(is_new.then_some(target));
        Ok(())
    }

    fn write_to(&self, new: &Path) -> io::Result<()> {
        let mode = match &self.body {
            Body::Link(of) => return symlink(of, new),
            Body::Copy(from, symbols) => {
                io::copy(&mut fs::File::open(from)?, &mut nmad_words::file::create(new)?)?;
                if *symbols == Symbols::Stripped {
                    strip::strip(new);
                }
                EXECUTABLE
            }
            Body::Bytes(bytes, mode) => {
                nmad_words::file::write(new, bytes)?;
                *mode
            }
        };
        fs::set_permissions(new, fs::Permissions::from_mode(mode))
    }
}

/// The system's words, and what to do about it where that is known.
fn refused(what: &str, path: &Path, error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a prefix that you may write to (--prefix ~/.local), or ask the owner of the folder"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room there, or choose another folder (--prefix)"
        }
        io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "; move that away, or choose another folder (--prefix)"
        }
        _ => "",
    };
    format!("cannot {what} {}: {error}{remedy}", path.display())
}
