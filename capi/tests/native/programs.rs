//! Programs in C, as jobs of several ranks.

use crate::library::{compile, output, source};
use nmad_launch::{ExitReport, Job, Stdin};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A launcher catches signals: one at a time in a process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a program that must end well within a minute.
fn run(folder: &str, name: &str, ranks: u32) {
    run_to(folder, name, &[], ranks, 0);
}

/// Runs a program that must end with this code.
fn run_to(folder: &str, name: &str, words: &[&str], ranks: u32, expected: i32) {
    let program = compile("c99", &source(folder).join(format!("{name}.c")));
    let mut job = Job::new(program, words.iter().copied(), ranks);
    job.timeout = Some(Duration::from_secs(60));
    job.stdin = Stdin::None;
    // Time is for what is tested, and no profile of an earlier job decides how messages go.
    job.env.push(("NMAD_SAMPLE".into(), "off".into()));
    job.env.push(("XDG_CACHE_HOME".into(), "/dev/null".into()));
    // A rank that looks at the death of another must live a little longer than it.
    job.grace = Duration::from_secs(8);
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    match nmad_launch::run(job) {
        Ok(ExitReport { code, .. }) => assert_eq!(code, expected, "{name} {words:?}"),
        Err(why) => panic!("{name}: {why}"),
    }
}

#[test]
fn messages_go_every_way_that_there_is() {
    run("tests/native", "messages", 2);
}

#[test]
fn what_a_caller_gets_wrong_is_a_code_and_a_text() {
    // Without a launcher, which lets a process join its job once.
    output(&mut Command::new(compile("c99", &source("tests/native/errors.c"))));
}

#[test]
fn strategies_that_answer_nonsense_are_asked_no_more() {
    run("tests/native", "strategy", 2);
}

#[test]
fn messages_arrive_while_their_receiver_computes_forks_and_gets_signals() {
    run("tests/native", "progress", 2);
}

#[test]
fn threads_share_a_session() {
    run("tests/native", "threads", 2);
}

#[test]
fn a_peer_that_dies_is_a_code() {
    run_to("tests/native", "death", &["kill"], 2, 128 + 9);
    run_to("tests/native", "death", &["abort"], 2, 7);
}

#[test]
fn the_examples_run() {
    for (name, ranks) in [("hello", 4), ("pieces", 2), ("service", 3), ("loop", 3), ("strategy", 2)] {
        run("examples", name, ranks);
    }
}

#[test]
fn every_example_is_run() {
    let count = std::fs::read_dir(source("examples")).expect("examples").filter(|entry| {
        entry.as_ref().is_ok_and(|entry| Path::new(&entry.file_name()).extension().is_some_and(|e| e == "c"))
    });
    assert_eq!(count.count(), 5);
}
