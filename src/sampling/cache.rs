//! Profiles as files: in the user's cache folder, or shipped with a cluster.
//!
//! A file in the cache contains one profile and is named after its key. It is written under another name
//! and renamed, so that concurrent jobs leave one complete profile. A shipped file may contain several, one
//! after the other.

use super::doubt;
use super::hardware::Key;
use nmad_engine::Profile;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Longest file accepted as a profile, in bytes; a profile of ten thousand lines needs less.
const LEN_MAX: u64 = 4 << 20;
/// First words of every profile.
const FIRST: &str = "nmad profile ";

/// Returns the folder of profiles; `None` without a home.
pub fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    Some(base.or_else(|| Some(set("HOME")?.join(".cache")))?.join("nmad/profiles"))
}

/// Returns the path of the profile of this key.
pub fn path(folder: &Path, key: &Key) -> PathBuf {
    folder.join(format!("{}.profile", key.short()))
}

/// Loads the profile of this key; `None` if there is no file.
///
/// # Errors
/// The file is not this profile: its path, and the reason.
pub fn load(folder: &Path, key: &Key) -> Result<Option<Profile>, String> {
    let path = path(folder, key);
    let refused = |why: String| format!("the profile {} is not used: {why}", path.display());
    let text = match read(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(refused(error.to_string())),
    };
    let profile = Profile::parse(&text).map_err(|error| refused(error.to_string()))?;
    if let Some(why) = doubt::absurd(&profile) {
        return Err(refused(why));
    }
    match profile.provenance().key == key.to_string() {
        true => Ok(Some(profile)),
        false => Err(refused(format!("it is of '{}', not of '{key}'", profile.provenance().key))),
    }
}

/// Stores a profile; replaces the existing one.
///
/// # Errors
/// The folder cannot be created or written to.
pub fn store(folder: &Path, key: &Key, profile: &Profile) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let place = path(folder, key);
    let beside = folder.join(format!(".{}.{}", key.short(), std::process::id()));
    let written = nmad_words::file::create(&beside)
        .and_then(|mut file| file.write_all(profile.print().as_bytes()))
        .and_then(|()| std::fs::rename(&beside, &place));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// Reads the profiles of a shipped file.
///
/// # Errors
/// The file cannot be read, or one of its profiles is invalid.
pub fn shipped(path: &Path) -> Result<Vec<Profile>, String> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let text = read(path).map_err(|error| wrong(error.to_string()))?;
    let starts = text.match_indices(FIRST).map(|(at, _)| at);
    let starts: Vec<usize> = starts.filter(|&at| at == 0 || text[..at].ends_with('\n')).collect();
    if starts.first() != Some(&0) {
        return Err(wrong("not a profile (nmad sample --out FILE makes one)".into()));
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let parts = starts.iter().zip(ends).enumerate();
    let parse = |(index, (&from, to)): (usize, (&usize, usize))| {
        Profile::parse(&text[from..to]).map_err(|error| wrong(format!("profile {}, {error}", index + 1)))
    };
    parts.map(parse).collect()
}

fn read(path: &Path) -> std::io::Result<String> {
    // Other kinds of files, above all pipes, might never end.
    let about = std::fs::metadata(path)?;
    if !about.is_file() || about.len() > LEN_MAX {
        return Err(std::io::Error::other("not a file of a profile's size"));
    }
    std::fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::hardware::Distance;
    use nmad_engine::{Method, Provenance, Sample};

    fn key(rail: &str) -> Key {
        Key { rail: rail.into(), distance: Distance::OtherHost, host: "a machine".into() }
    }

    fn profile(key: &Key, ns: u64) -> Profile {
        let provenance = Provenance { key: key.to_string(), ..Provenance::default() };
        let sample = |len: u64| (Method::Copy, Sample::of(len, &mut [ns + len]).expect("a time"));
        Profile::new(provenance, [8, 1024].map(sample)).expect("two sizes")
    }

    #[test]
    fn a_profile_is_found_again_and_others_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("not/yet/there");
        let (one, other) = (key("tcp 4000"), key("tcp 2800"));
        assert_eq!(load(&folder, &one), Ok(None));
        store(&folder, &one, &profile(&one, 1)).expect("it can be written");
        store(&folder, &one, &profile(&one, 2)).expect("it can be replaced");
        assert_eq!(load(&folder, &one), Ok(Some(profile(&one, 2))));
        assert_eq!(load(&folder, &other), Ok(None));
        assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn damaged_and_foreign_files_are_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (key("tcp 4000"), key("tcp 2800"));
        store(folder.path(), &one, &profile(&one, 1)).expect("it can be written");
        std::fs::copy(path(folder.path(), &one), path(folder.path(), &other)).expect("a copy");
        let error = load(folder.path(), &other).expect_err("it is of another rail");
        assert!(error.contains("tcp 4000, other host | a machine"), "{error}");
        let whole = profile(&one, 1).print();
        let older = whole.replace("nmad profile 3", "nmad profile 2");
        let changed = whole.replace(" 1024 ", " 1025 ");
        let absurd = Profile::new(
            Provenance { key: one.to_string(), ..Provenance::default() },
            [(8, 50_000), (1024, 60)]
                .map(|(len, ns)| (Method::Copy, Sample::of(len, &mut [ns]).expect("a time"))),
        );
        let absurd = absurd.expect("two sizes").print();
        for text in [&whole[..whole.len() / 2], "", "x", &changed, &older, &absurd] {
            std::fs::write(path(folder.path(), &one), text).expect("it can be written");
            let error = load(folder.path(), &one).expect_err("it is damaged");
            assert!(error.contains("-other-host-") && error.contains("nmad sample"), "{error}");
        }
    }

    #[test]
    fn a_shipped_file_has_any_number_of_profiles() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cluster.profile");
        let all = [profile(&key("a"), 1), profile(&key("b"), 2)];
        std::fs::write(&path, all.iter().map(Profile::print).collect::<String>()).expect("it can be written");
        assert_eq!(shipped(&path), Ok(all.to_vec()));
        std::fs::write(&path, format!("{}x", all[0].print())).expect("it can be written");
        assert!(shipped(&path).expect_err("a letter too many").contains("profile 1, line"));
        std::fs::write(&path, "hello").expect("it can be written");
        assert!(shipped(&path).expect_err("no profile").contains("nmad sample --out"));
        assert!(shipped(Path::new("/dev/zero")).expect_err("endless").contains("/dev/zero: not a file"));
    }
}
