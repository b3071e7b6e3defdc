//! The examples in C, in both binary interfaces.

use crate::library::{ABIS, compile};
use nmad_launch::{ExitReport, Job, Stdin};
use nmad_mpi_table::Abi;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A launcher catches signals: one at a time in a process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn run(abi: Abi, file: &str, words: &[&str], ranks: u32, expected: i32) {
    let mut job = Job::new(compile("c99", abi, &source(file)), words.iter().copied(), ranks);
    job.timeout = Some(Duration::from_secs(60));
    job.stdin = Stdin::None;
    // Time is for what is tested.
    job.env.push(("NMAD_SAMPLE".into(), "off".into()));
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    match nmad_launch::run(job) {
        Ok(ExitReport { code, .. }) => {
            assert_eq!(code, expected, "{file} {words:?} with {ranks} ranks, {abi:?}")
        }
        Err(why) => panic!("{file}: {why}"),
    }
}

/// Name, arguments, ranks.
const EXAMPLES: [(&str, &[&str], &[u32]); 5] = [
    ("ring", &[], &[1, 4]),
    ("heat", &["16"], &[1, 3]),
    ("cg", &["8"], &[1, 2, 4]),
    ("sixteen", &["50"], &[2]),
    ("indexed", &["3"], &[2]),
];

#[test]
fn the_examples_run_in_both_interfaces() {
    for (name, words, ranks) in EXAMPLES {
        for abi in ABIS {
            ranks.iter().for_each(|&ranks| run(abi, &format!("examples/{name}.c"), words, ranks, 0));
        }
    }
}

#[test]
fn what_a_program_gets_wrong_has_the_class_that_the_standard_says() {
    ABIS.into_iter().for_each(|abi| run(abi, "tests/native/errors.c", &[], 2, 0));
}

#[test]
fn functions_of_the_program_are_called_with_its_handles() {
    ABIS.into_iter().for_each(|abi| run(abi, "tests/native/callbacks.c", &[], 3, 0));
}

#[test]
fn every_example_is_run() {
    let files = std::fs::read_dir(source("examples")).expect("examples");
    assert_eq!(files.count(), EXAMPLES.len());
}
