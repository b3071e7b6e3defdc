//! `nmad bench io` with this build alone: every pattern is compiled, run and checked.

use crate::command::{Ended, run};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// On a busy machine the program is compiled for minutes.
const LIMIT: Duration = Duration::from_secs(600);

fn io(folder: &Path, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nmad"));
    command.args(["bench", "io", "--quick"]).args(words);
    run(command.env("NMAD_SAMPLE", "off").env("XDG_CACHE_HOME", folder.join("cache")))
}

#[test]
fn every_pattern_writes_and_reads_what_is_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = folder.path().join("files");
    std::fs::create_dir(&files).expect("a folder");
    let path = files.to_str().expect("a path in text");
    let ended = io(folder.path(), &["--peer", "none", "--place", "node1,node2", "--json", "--path", path]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let figures = ended.json();
    // A pattern with wrong data prints no figure.
    assert_eq!(figures.len(), 2 * 13, "{}", ended.err);
    for figure in &figures {
        assert!(figure["bench"] == "io" && figure["folder"] == path, "{figure}");
        assert!(figure["us"].as_f64().is_some_and(|us| us > 0.0), "{figure}");
    }
    assert_eq!(std::fs::read_dir(&files).expect("it is there").count(), 0, "nothing is left behind");
}

/// The folder is there before the program is compiled; the first record is written after that.
#[test]
fn a_run_that_is_ended_removes_its_files_and_ends_its_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = folder.path().join("files");
    std::fs::create_dir(&files).expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nmad"));
    command.args(["bench", "io", "--peer", "none", "--pattern", "records", "--rounds", "99", "--path"]);
    command.arg(&files).env("NMAD_SAMPLE", "off").env("XDG_CACHE_HOME", folder.path().join("cache"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = Instant::now();
    let written = || {
        let folders = std::fs::read_dir(&files).expect("it is there").flatten();
        // The file of the owner, and one of records.
        folders.flat_map(|own| std::fs::read_dir(own.path())).flatten().count() > 1
    };
    while !written() {
        assert!(
            begun.elapsed() < LIMIT && child.try_wait().expect("a child").is_none(),
            "no file is written"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let kill = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
    assert!(kill.is_ok_and(|status| status.success()));
    let ended = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(128 + 15), "{err}");
    assert!(err.contains("ended by SIGTERM"), "{err}");
    assert_eq!(std::fs::read_dir(&files).expect("it is there").count(), 0, "nothing is left behind");
}

#[test]
fn what_there_is_not_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for (words, hint) in [
        (["--pattern", "random"], "records-read"),
        (["--place", "hosts2"], "node1"),
        (["--size", "4"], "it has 8 B to"),
        (["--peer", "intel"], "NAME=PREFIX"),
        (["--path", "/no/such"], "there is no folder /no/such"),
    ] {
        let ended = io(folder.path(), &words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.err);
        assert!(ended.err.contains(hint), "{words:?}: {}", ended.err);
    }
    assert!(!folder.path().join("cache").exists());
}
