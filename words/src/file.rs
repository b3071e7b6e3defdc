//! Files that programs write where the user wants them, also in folders into which other users write.
//!
//! In such a folder (`/tmp`, a folder of a project) somebody else may have put a link, a pipe or a hard link
//! under the name that is to be written, so that writing destroys another file of the user. Everything that
//! programs write under a name that somebody can guess goes through [`create`] or [`write`]; folders for
//! what a program needs only while it runs are new and private, as the `tempfile` crate makes them.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file for writing; what is in it is removed. Where other users may write into the folder, it is a
/// new file, or one of this user that has no other name: nothing that somebody else has put there is
/// followed, opened or overwritten.
///
/// # Errors
/// The system refuses, or what is there belongs to somebody else.
pub fn create(path: &Path) -> io::Result<File> {
    let file = append(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// As [`create`], and what is in the file stays; everything is written behind it.
///
/// # Errors
/// As [`create`].
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true);
    if !is_shared(path)? {
        return options.create(true).open(path);
    }
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        other => return other,
    }
    let found = std::fs::symlink_metadata(path)?;
    if !is_trusted(found.uid()) {
        return Err(foreign("what is there belongs", found.uid()));
    }
    if found.is_symlink() || found.file_type().is_char_device() {
        return options.open(path);
    }
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = options.custom_flags(flags).open(path)?;
    // Of what was opened, not of what was there before.
    let opened = file.metadata()?;
    if !is_trusted(opened.uid()) {
        return Err(foreign("what is there belongs", opened.uid()));
    }
    if opened.is_file() && opened.nlink() > 1 {
        return Err(io::Error::other(
            "what is there has another name, too, and others may write to the folder (remove it, or name \
             another file)",
        ));
    }
    Ok(file)
}

/// Writes a file as [`create`] opens it.
///
/// # Errors
/// As [`create`], or the disk is full.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(bytes.as_ref())
}

/// Makes a folder for files whose names a program does not choose itself, or takes the one that is there.
///
/// # Errors
/// The system refuses, or somebody else may write into the folder.
pub fn folder(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)?;
    let found = std::fs::metadata(path)?;
    if !is_trusted(found.uid()) {
        return Err(foreign("the folder belongs", found.uid()));
    }
    if found.mode() & 0o002 != 0 {
        return Err(io::Error::other("every user may write to the folder (name one of your own)"));
    }
    Ok(())
}

/// Whether somebody else may have put something into the folder of a file.
fn is_shared(path: &Path) -> io::Result<bool> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = std::fs::metadata(folder)?;
    Ok(found.mode() & 0o022 != 0 || !is_trusted(found.uid()))
}

/// This user, or the one who may do everything anyway.
fn is_trusted(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

fn foreign(what: &str, user: u32) -> io::Error {
    io::Error::other(format!("{what} to user {user} (name another one, or a folder of your own)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Gid, Mode, Uid, chmod, chownat};
    use std::os::unix::fs::symlink;

    /// Nobody.
    const OTHER: u32 = 65_534;

    fn shared() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        chmod(folder.path(), Mode::from_raw_mode(0o1777)).expect("it is ours");
        folder
    }

    /// Gives something to another user, where that is permitted.
    fn gives_away(path: &Path) -> bool {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let (uid, gid) = (Some(Uid::from_raw(OTHER)), Some(Gid::from_raw(OTHER)));
        chownat(rustix::fs::CWD, path, uid, gid, flags).is_ok()
    }

    #[test]
    fn a_file_is_new_or_empty_whoever_may_write_to_the_folder() {
        for folder in [shared(), tempfile::tempdir().expect("a folder")] {
            let path = folder.path().join("out");
            for text in ["a long text", "short"] {
                write(&path, text).expect("it is ours");
                assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
            }
        }
        write(Path::new("/dev/null"), "text").expect("a device of the system");
        assert!(create(Path::new("/no-such-folder/file")).is_err());
    }

    #[test]
    fn another_name_of_a_file_of_ours_is_not_written_to_where_others_could_have_made_it() {
        let (folder, own) = (shared(), tempfile::tempdir().expect("a folder"));
        let (precious, path) = (own.path().join("precious"), folder.path().join("out"));
        std::fs::write(&precious, "precious").expect("a file");
        if std::fs::hard_link(&precious, &path).is_err() {
            return eprintln!("skipped: the folder for temporary files takes no second name of a file");
        }
        let why = create(&path).expect_err("it has two names").to_string();
        assert!(why.contains("another name"), "{why}");
        assert_eq!(std::fs::read_to_string(&precious).expect("it is there"), "precious");
    }

    #[test]
    fn links_files_pipes_and_folders_of_others_are_not_used() {
        let (folder, own) = (shared(), tempfile::tempdir().expect("a folder"));
        let precious = own.path().join("precious");
        std::fs::write(&precious, "precious").expect("a file");
        let paths = ["link", "file", "pipe"].map(|name| folder.path().join(name));
        symlink(&precious, &paths[0]).expect("a link");
        std::fs::write(&paths[1], "").expect("a file");
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &paths[2], rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
        if !paths.iter().all(|path| gives_away(path)) {
            return eprintln!("skipped: only root can give files to another user");
        }
        for path in &paths {
            let why = write(path, "destroyed").expect_err("it is another user's").to_string();
            assert!(why.contains(&format!("belongs to user {OTHER}")), "{why}");
        }
        assert_eq!(std::fs::read_to_string(&precious).expect("it is there"), "precious");
        // Also in a folder that only its owner writes to, where that owner is somebody else.
        let theirs = own.path().join("theirs");
        std::fs::create_dir(&theirs).expect("a folder");
        symlink(&precious, theirs.join("link")).expect("a link");
        assert!(gives_away(&theirs.join("link")) && gives_away(&theirs));
        assert!(write(&theirs.join("link"), "destroyed").is_err());
        assert!(super::folder(&theirs).is_err() && super::folder(folder.path()).is_err());
        super::folder(&own.path().join("new/one")).expect("it is ours");
        assert_eq!(std::fs::read_to_string(&precious).expect("it is there"), "precious");
    }
}
