//! Published names of services: a process publishes its port under a name, for jobs of the same user on
//! this machine.
//!
//! Each name is a file in a folder that only the user can read. Names of ended processes are not found.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Publishes a port under a name; returns false if another living process has published the name.
///
/// # Errors
/// The file cannot be written.
pub fn publish(service: &str, port: &str) -> io::Result<bool> {
    publish_in(&folder()?, service, port)
}

/// Withdraws a name; returns false if it is not published.
///
/// # Errors
/// The file cannot be removed.
pub fn unpublish(service: &str) -> io::Result<bool> {
    unpublish_in(&folder()?, service)
}

/// Returns the port that is published under a name, if any.
///
/// # Errors
/// The file cannot be read.
pub fn lookup(service: &str) -> io::Result<Option<String>> {
    lookup_in(&folder()?, service)
}

fn folder() -> io::Result<PathBuf> {
    let own = rustix::process::getuid().as_raw();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_dir() => folder.join("nmad-names"),
        _ => std::env::temp_dir().join(format!("nmad-names-{own}")),
    };
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = std::fs::symlink_metadata(&folder)?;
    // Another user may have made a folder of this name before.
    if !found.is_dir() || found.uid() != own || found.mode() & 0o077 != 0 {
        let text = format!("{} is not a folder of this user alone", folder.display());
        return Err(io::Error::other(text));
    }
    Ok(folder)
}

fn file(folder: &Path, service: &str) -> PathBuf {
    folder.join(&blake3::hash(service.as_bytes()).to_hex()[..32])
}

fn publish_in(folder: &Path, service: &str, port: &str) -> io::Result<bool> {
    if lookup_in(folder, service)?.is_some() {
        return Ok(false);
    }
    let path = file(folder, service);
    let own = std::process::id();
    let text = format!("{own} {}\n{port}\n", started(own).unwrap_or_default());
    // The file is linked when it is complete, so that no reader sees a part of it.
    let draft = path.with_extension(format!("{own}"));
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    new.write_all(text.as_bytes())?;
    let linked = std::fs::hard_link(&draft, &path);
    std::fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn unpublish_in(folder: &Path, service: &str) -> io::Result<bool> {
    if lookup_in(folder, service)?.is_none() {
        return Ok(false);
    }
    match std::fs::remove_file(file(folder, service)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn lookup_in(folder: &Path, service: &str) -> io::Result<Option<String>> {
    let path = file(folder, service);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut lines = text.lines();
    let owner = lines.next().and_then(|line| line.split_once(' '));
    let lives = owner.and_then(|(pid, since)| Some(started(pid.parse().ok()?)? == since)).unwrap_or(false);
    if !lives {
        let _ = std::fs::remove_file(&path);
        return Ok(None);
    }
    Ok(lines.next().map(String::from))
}

/// Returns the start time of a process in the kernel's unit; `None` if there is no such process.
fn started(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    crate::os::field_of_stat(&stat, 19).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_until_it_is_withdrawn_or_its_process_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        assert_eq!(lookup_in(folder, "a/b").expect("it can be read"), None);
        assert!(publish_in(folder, "a/b", "nmad#1").expect("it can be written"));
        assert!(!publish_in(folder, "a/b", "nmad#2").expect("it can be written"));
        assert_eq!(lookup_in(folder, "a/b").expect("it can be read").as_deref(), Some("nmad#1"));
        assert!(unpublish_in(folder, "a/b").expect("it can be removed"));
        assert!(!unpublish_in(folder, "a/b").expect("it is not there"));
        // No process with this number was started at time 0.
        std::fs::write(file(folder, "old"), format!("{} 0\nnmad#3\n", std::process::id())).expect("a file");
        assert_eq!(lookup_in(folder, "old").expect("it can be read"), None);
        assert!(publish_in(folder, "old", "nmad#4").expect("it can be written"));
    }
}
