//! Jobs that survive the death of ranks (`mpiexec --ft`), with real kills.

use crate::library::ABIS;
use crate::programs::{job, launch};
use nmad_launch::Job;
use nmad_mpi_table::Abi;

fn surviving(abi: Abi, file: &str, words: &[&str], ranks: u32) -> Job {
    Job { ft: true, keep_going: true, ..job(abi, &[file], words, ranks, &[]) }
}

#[test]
fn calls_that_need_the_dead_end_and_survivors_go_on() {
    let file = "tests/native/failures.c";
    for case in ["point-to-point", "any-source", "revoke", "agree", "window", "sessions"] {
        for (abi, ranks) in ABIS.into_iter().zip([3, 4]) {
            assert_eq!(launch(surviving(abi, file, &[case], ranks)), 0, "{case} with {ranks} ranks");
        }
    }
    for collective in ["allreduce", "barrier", "cast", "gather", "iallreduce", "dup"] {
        let job = surviving(ABIS[0], file, &["collective", collective], 4);
        assert_eq!(launch(job), 0, "{collective}");
    }
}

#[test]
fn a_job_that_does_not_survive_failures_refuses_the_calls() {
    for abi in ABIS {
        let job = job(abi, &["tests/native/failures.c"], &["without"], 2, &[]);
        assert_eq!(launch(job), 0);
    }
}

#[test]
fn ranks_that_die_at_random_moments_leave_right_results() {
    for (abi, seed) in ABIS.into_iter().cycle().zip(1..7) {
        let words = ["1", "3", &seed.to_string()];
        let job = surviving(abi, "tests/native/survive.c", &words, 6);
        assert_eq!(launch(job), 0, "seed {seed}");
    }
}

#[test]
fn files_go_on_without_an_owner_that_dies() {
    for (abi, ranks) in ABIS.into_iter().zip([3, 4]) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        let path = path.to_str().expect("a path in text");
        let job = surviving(abi, "tests/native/file-owner-death.c", &[path], ranks);
        assert_eq!(launch(job), 0, "{ranks} ranks");
    }
}

#[test]
fn dead_ranks_are_replaced_and_the_answer_is_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |words: &[&str]| {
        let out = folder.path().join(words.join("-"));
        let mut job = surviving(ABIS[0], "examples/restart.c", words, 4);
        job.output.files[0] = Some(out.clone());
        assert_eq!(launch(job), 0, "{words:?}");
        std::fs::read_to_string(out).expect("its output")
    };
    let without = answer(&["2"]);
    assert!(without.starts_with("sum 9.56447498"), "{without}");
    assert_eq!(answer(&["2", "kill"]), without);
}
