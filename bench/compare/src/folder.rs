//! A folder that a run makes where the user asks for it, and removes at its end.
//!
//! A run that is killed leaves its folder, and the next run in the same place removes it. So each folder has
//! a file that its run has locked: the system unlocks it when the process ends, however that ends. Process
//! numbers would not do, since runs on several hosts may share a file system.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Beginning of the names of all such folders.
const PREFIX: &str = "nmad-io-";
/// The file that the run has locked, and its name before that.
const OWNER: &str = "owner";
const OWNER_TO_BE: &str = "owner.new";
/// Time that ranks which were killed just now may still make files.
const LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// A folder of this run.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Locked; none: the file system has no locks, so no other run removes the folder.
    _owner: Option<File>,
}

impl Folder {
    /// Makes a folder in `place`, and removes those of earlier runs that were killed.
    pub(crate) fn make_in(place: &Path) -> io::Result<Folder> {
        remove_abandoned(place)?;
        let path = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?.keep();
        let owner = own(&path).inspect_err(|_| _ = fs::remove_file(path.join(OWNER_TO_BE)));
        Ok(Folder { path, _owner: owner.ok() })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let begun = Instant::now();
        while fs::remove_dir_all(&self.path).is_err() && self.path.exists() && begun.elapsed() < LIMIT {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Locks the file of a new folder, which gets its name when it is locked.
fn own(folder: &Path) -> io::Result<File> {
    let (to_be, owner) = (folder.join(OWNER_TO_BE), folder.join(OWNER));
    let file = File::create_new(&to_be)?;
    file.try_lock()?;
    fs::rename(to_be, owner)?;
    Ok(file)
}

/// Removes the folders whose runs have ended.
fn remove_abandoned(place: &Path) -> io::Result<()> {
    for entry in fs::read_dir(place)?.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        // Another file system or another user may keep this run from it; then the folder stays.
        let owner = File::options().read(true).write(true).open(entry.path().join(OWNER));
        if owner.is_ok_and(|owner| owner.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(place: &Path) -> Vec<String> {
        let entries = fs::read_dir(place).expect("it is there").flatten();
        entries.map(|entry| entry.file_name().into_string().expect("text")).collect()
    }

    #[test]
    fn folders_of_runs_that_were_killed_are_removed_and_no_others() {
        let place = tempfile::tempdir().expect("a folder");
        let killed = place.path().join("nmad-io-killed");
        fs::create_dir_all(killed.join("deep")).expect("a folder");
        fs::write(killed.join(OWNER), "").expect("a file");
        let foreign = ["nmad-io-", "nmad-io-without-owner", "notes"];
        foreign.iter().for_each(|name| fs::create_dir(place.path().join(name)).expect("a folder"));
        let first = Folder::make_in(place.path()).expect("a folder");
        fs::write(first.path().join("data"), "x").expect("a file");
        let second = Folder::make_in(place.path()).expect("a folder");
        assert!(!killed.exists() && first.path().join("data").exists() && second.path().exists());
        drop((first, second));
        let mut left = names(place.path());
        left.sort();
        assert_eq!(left, foreign);
    }

    #[test]
    fn a_folder_in_which_files_are_still_made_is_removed_when_that_ends() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = Folder::make_in(place.path()).expect("a folder");
        let path = folder.path().to_owned();
        let begun = Instant::now();
        let rank = std::thread::spawn(move || {
            let mut count = 0;
            while begun.elapsed() < Duration::from_millis(100) {
                count += usize::from(fs::write(path.join(format!("{count}")), "x").is_ok());
            }
        });
        drop(folder);
        rank.join().expect("it ends");
        assert_eq!(names(place.path()), [""; 0]);
    }
}
