//! Destination of the ranks' output: the launcher's own output, with or without a prefix for each line, or
//! files.

use std::fs::{File, create_dir_all};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::LaunchError;

/// Destination of the ranks' output. By default ranks inherit our standard output and error, so that a
/// terminal stays a terminal for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Whether the launcher writes it line by line with `[rank] ` before each line.
    pub tag: bool,
    /// Whether the launcher writes it line by line with the time at which the line was complete before each
    /// line.
    pub timestamp: bool,
    /// Files on the rank's host for standard output and error: `%r` in a name is the rank, `%h` the name of
    /// its host, `%g` is 1, or more in spawned jobs.
    pub files: [Option<PathBuf>; 2],
}

/// A rank whose files are opened.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// The rank.
    pub rank: u32,
    /// Its number among the ranks that this process starts.
    pub place: u32,
    /// 0, or the number of its job among the spawned ones.
    pub group: u32,
    /// The name of its host.
    pub host: &'a str,
}

impl Output {
    /// Returns whether output passes through the launcher line by line.
    pub(crate) fn is_in_lines(&self) -> bool {
        self.tag || self.timestamp
    }

    /// Opens the files of one rank, and creates their folders.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn open(&self, writer: Writer<'_>) -> Result<[Option<File>; 2], LaunchError> {
        let [out, err] = self.files.each_ref().map(|pattern| {
            let open = |pattern: &PathBuf| open(pattern, writer);
            pattern.as_ref().map(open).transpose()
        });
        Ok([out?, err?])
    }
}

fn open(pattern: &Path, writer: Writer<'_>) -> Result<File, LaunchError> {
    let pattern = pattern.to_string_lossy();
    let named = [("%r", writer.rank.to_string()), ("%g", (writer.group + 1).to_string())];
    let mut name = pattern.replace("%h", writer.host);
    for (mark, text) in &named {
        name = name.replace(mark, text);
    }
    // Ranks that share a file append to it; the first one of the job truncates it.
    let is_first = writer.place == 0 || pattern.contains("%r");
    let is_old = is_first && (writer.group == 0 || pattern.contains("%g"));
    let path = Path::new(&name);
    let folder = path.parent().map_or(Ok(()), create_dir_all);
    let file = folder
        .and_then(|()| if is_old { nmad_words::file::create(path) } else { nmad_words::file::append(path) });
    file.map_err(|error| {
        let rank = writer.rank;
        LaunchError::Job(format!("the output of rank {rank} cannot be written to {name}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn each_rank_has_its_files_and_a_common_one_begins_anew_with_each_job() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| Some(folder.path().join(name));
        let output = Output { files: [at("%g/%h.%r"), at("all")], ..Output::default() };
        for _ in 0..2 {
            for (rank, group) in [(0, 0), (1, 0), (0, 1)] {
                let writer = Writer { rank, place: rank, group, host: "a" };
                let [out, err] = output.open(writer).expect("they can be written");
                write!(out.expect("one"), "out {rank}").expect("it is taken");
                write!(err.expect("one"), "err {group}.{rank};").expect("it is taken");
            }
            let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
            assert_eq!([read("1/a.0"), read("1/a.1"), read("2/a.0")], ["out 0", "out 1", "out 0"]);
            assert_eq!(read("all"), "err 0.0;err 0.1;err 1.0;");
        }
        let output = Output { files: [Some("/proc/no/such".into()), None], ..Output::default() };
        let error = output.open(Writer { rank: 3, place: 0, group: 0, host: "a" }).expect_err("it is none");
        assert!(error.to_string().contains("rank 3 cannot be written to /proc/no/such"), "{error}");
    }
}
