//! Finds the PMIx library: the user's file, the linker's search, the launcher's copy.

use std::path::{Path, PathBuf};

/// The variable with the path of the library.
pub const VARIABLE: &str = nmad_words::setting::PMIX.name;

/// The file name since PMIx 2.
const NAME: &str = "libpmix.so.2";

/// Number of ancestor processes to inspect: a launcher may start its ranks through some scripts.
const GENERATIONS: usize = 8;

/// Returns the files to try, in this order; a name without a slash means the linker's search.
///
/// `given` is the value of [`VARIABLE`]; if set, it is the only candidate.
pub fn candidates(given: Option<&str>) -> Vec<PathBuf> {
    if let Some(given) = given {
        return vec![given.into()];
    }
    let mut all = vec![PathBuf::from(NAME)];
    all.extend(ancestors(std::process::id()).filter_map(|process| {
        // A launcher of another user hides its files; then the linker has to find the library.
        loaded(&std::fs::read_to_string(format!("/proc/{process}/maps")).ok()?).map(Path::to_path_buf)
    }));
    all.dedup();
    all
}

/// Returns the ancestors of `process`, the nearest first.
fn ancestors(process: u32) -> impl Iterator<Item = u32> {
    let above = |process: &u32| {
        parent(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?).filter(|above| *above > 1)
    };
    std::iter::successors(Some(process), above).skip(1).take(GENERATIONS)
}

/// Parses the parent from `/proc/PID/stat`.
fn parent(stat: &str) -> Option<u32> {
    crate::os::field_of_stat(stat, 1)?.parse().ok()
}

/// Returns the file of the PMIx library in the `maps` of a process.
fn loaded(maps: &str) -> Option<&Path> {
    let file = |line: &str| line.find('/').map(|start| line.len() - start);
    maps.lines()
        .filter_map(|line| file(line).map(|length| Path::new(&line[line.len() - length..])))
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NAME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_file_is_the_only_candidate() {
        assert_eq!(candidates(Some("/opt/libpmix.so")), [PathBuf::from("/opt/libpmix.so")]);
        assert_eq!(candidates(None)[0], PathBuf::from("libpmix.so.2"));
    }

    #[test]
    fn the_launcher_shows_its_own() {
        let maps = "7f1c0000-7f1d0000 r-xp 00000000 08:01 131 /usr/lib/libc.so.6\n\
                    7f1d0000-7f1e0000 r-xp 00000000 08:01 132 /opt/my mpi/lib/libpmix.so.2.9.3\n\
                    7ffd0000-7ffe0000 rw-p 00000000 00:00 0 [stack]\n";
        assert_eq!(loaded(maps), Some(Path::new("/opt/my mpi/lib/libpmix.so.2.9.3")));
        assert_eq!(loaded("7ffd0000-7ffe0000 rw-p 00000000 00:00 0 [stack]\n"), None);
    }

    #[test]
    fn parents_are_found_whatever_a_program_is_called() {
        assert_eq!(parent("17 (a) b) S 4 17 17 0"), Some(4));
        assert_eq!(parent("17"), None);
        let above = std::os::unix::process::parent_id();
        assert_eq!(ancestors(std::process::id()).next().or(Some(above)), Some(above));
    }
}
