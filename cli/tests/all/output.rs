//! Standard output that takes nothing: a reader that has gone, and a disk that is full.

use crate::command::{Ended, run_into};
use std::fs::File;
use std::process::{Command, Stdio};

/// Command lines that print, each in a way of its own.
const LINES: [&str; 8] = [
    "--help",
    "sim --seed 137 --explain",
    "sim --seed 1..3",
    "sim --seed 1 --json",
    "sim --golden list",
    "info --json",
    "uninstall --help",
    "testbed --show",
];

/// Runs the line with its output into `out`.
fn into(out: impl Into<Stdio>, line: &str) -> Ended {
    run_into(out.into(), Command::new(env!("CARGO_BIN_EXE_nmad")).args(line.split(' ')))
}

fn lines() -> impl Iterator<Item = &'static str> {
    let allowed = nmad_testbed::available().map_err(|refused| eprintln!("skipped: {refused}")).is_ok();
    LINES.into_iter().filter(move |line| allowed || !line.starts_with("testbed"))
}

#[test]
fn a_full_disk_is_told_once_and_is_a_failure() {
    // What ranks print goes through the launcher, which knows whose line it is.
    for line in lines().chain(["run -l -n 1 echo"]) {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let ended = into(full, line);
        assert_eq!(ended.code, Some(1), "{line}: {}", ended.err);
        let told = ended.err.matches("nmad: cannot write to standard output: No space left on device");
        assert_eq!(told.count(), 1, "{line}: {}", ended.err);
        assert!(!ended.err.contains("panicked"), "{line}: {}", ended.err);
    }
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    for line in lines() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = into(writer, line);
        assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{line}");
    }
}
