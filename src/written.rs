//! Files that a rank writes for the user, beside those of the other ranks. An existing file is replaced,
//! with a message.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Creates the file of a rank for the setting of this name, like [`nmad_words::file::create`]. An older job
/// that still writes to a file of this name keeps its open file; links are replaced, and devices and pipes
/// stay.
///
/// # Errors
/// The file cannot be created, or the existing one belongs to another user.
pub(crate) fn create(setting: &str, path: &Path, rank: u32) -> io::Result<File> {
    let is_replaced = |found: std::fs::Metadata| found.is_file() || found.is_symlink();
    if std::fs::symlink_metadata(path).is_ok_and(is_replaced) {
        std::fs::remove_file(path)?;
        if rank == 0 {
            let path = path.display();
            log::warn!(
                "{setting}: {path}, which another job has written, is replaced; another name or folder keeps \
                 both"
            );
        }
    }
    nmad_words::file::create(path)
}

/// Returns `base` followed by the rank. In a spawned job the name of the job comes before the rank, since
/// both jobs have the same setting.
pub(crate) fn name(base: &Path, job: &str, rank: u32) -> PathBuf {
    named(base, is_spawned().then_some(job), rank)
}

fn named(base: &Path, spawned: Option<&str>, rank: u32) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    if let Some(job) = spawned {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let job: String = job.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        name.push(format!("-{job}"));
    }
    name.push(format!(".{rank}"));
    name.into()
}

/// Returns whether this job was spawned by a running one.
fn is_spawned() -> bool {
    use nmad_launch::pmi::spawn::{SPAWNED, STARTED_BY};
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    is_set(SPAWNED) || is_set(STARTED_BY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_job_that_still_writes_keeps_its_file_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.0");
        let mut first = create("NMAD_TRACE", &path, 0).expect("it is new");
        let mut second = create("NMAD_TRACE", &path, 0).expect("it is replaced");
        second.write_all(b"second").expect("it is written");
        first.write_all(b"first, longer").expect("it is still open");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"second");
        let (other, link) = (folder.path().join("other"), folder.path().join("t.1"));
        std::fs::write(&other, "kept").expect("a file");
        std::os::unix::fs::symlink(&other, &link).expect("a link");
        create("NMAD_TRACE", &link, 1).expect("in place of the link").write_all(b"x").expect("written");
        assert_eq!(std::fs::read(&other).expect("it is there"), b"kept");
        assert!(create("NMAD_TRACE", &folder.path().join("no/t"), 0).is_err());
        create("NMAD_TRACE", Path::new("/dev/null"), 0).expect("a device").write_all(b"x").expect("written");
    }

    #[test]
    fn jobs_that_others_have_started_have_names_of_their_own() {
        let base = Path::new("a/t");
        assert_eq!(named(base, None, 3), Path::new("a/t.3"));
        assert_eq!(named(base, Some("prterun-x@2"), 3), Path::new("a/t-prterun-x_2.3"));
    }
}
