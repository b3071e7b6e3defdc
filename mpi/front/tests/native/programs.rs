//! The examples in C, in both binary interfaces.

use crate::library::{ABIS, compile_all, output};
use nmad_launch::{ExitReport, Job, Program, Stdin};
use nmad_mpi_table::Abi;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A launcher catches signals: one at a time in a process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn run(abi: Abi, file: &str, words: &[&str], ranks: u32, expected: i32) {
    start(abi, &[file], words, ranks, expected, &[]);
}

/// A program of several files, with variables of the environment.
fn start(abi: Abi, files: &[&str], words: &[&str], ranks: u32, expected: i32, variables: &[(&str, &str)]) {
    let code = launch(job(abi, files, words, ranks, variables));
    assert_eq!(code, expected, "{files:?} {words:?} with {ranks} ranks, {abi:?}, {variables:?}");
}

pub(crate) fn job(abi: Abi, files: &[&str], words: &[&str], ranks: u32, variables: &[(&str, &str)]) -> Job {
    let sources: Vec<PathBuf> = files.iter().map(|file| source(file)).collect();
    let mut job = Job::new(compile_all("c99", abi, &sources), words.iter().copied(), ranks);
    job.env.extend(variables.iter().map(|&(name, value)| (name.into(), value.into())));
    job.timeout = Some(Duration::from_secs(60));
    job.stdin = Stdin::None;
    // Time is for what is tested.
    job.env.push(("NMAD_SAMPLE".into(), "off".into()));
    // No profile of an earlier job decides how messages go.
    job.env.push(("XDG_CACHE_HOME".into(), "/dev/null".into()));
    job
}

/// The exit code of a job.
pub(crate) fn launch(job: Job) -> i32 {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    match nmad_launch::run(job) {
        Ok(ExitReport { code, .. }) => code,
        Err(why) => panic!("{why}"),
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
fn calls_are_in_the_trace_with_the_rank_that_they_receive_from() {
    for abi in ABIS {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().to_str().expect("a path in text");
        start(abi, &["examples/ring.c"], &[], 3, 0, &[("NMAD_TRACE", name)]);
        let trace = std::fs::read_to_string(folder.path().join("trace.1")).expect("it was written");
        let lines = |what: &str| trace.lines().filter(|line| line.contains(what)).collect::<Vec<_>>();
        let (sends, receives) = (lines("\"call\":\"MPI_Send\""), lines("\"call\":\"MPI_Recv\""));
        assert_eq!((sends.len(), receives.len()), (100, 100), "{abi:?}");
        assert!(receives.iter().all(|line| line.contains("\"from\":0,")), "{}", receives[0]);
        assert!(sends.iter().all(|line| !line.contains("\"from\"")), "{}", sends[0]);
        assert!(lines("MPI_Comm_rank").is_empty(), "what only looks something up is no communication");
    }
}

#[test]
fn what_a_program_gets_wrong_has_the_class_that_the_standard_says() {
    ABIS.into_iter().for_each(|abi| run(abi, "tests/native/errors.c", &[], 2, 0));
}

#[test]
fn requests_that_are_null_or_not_started_or_have_failed_are_told_alike() {
    ABIS.into_iter().for_each(|abi| run(abi, "tests/native/requests.c", &[], 1, 0));
}

#[test]
fn what_ranks_give_alike_all_of_them_refuse() {
    for ranks in [1, 2, 5] {
        ABIS.into_iter().for_each(|abi| run(abi, "tests/native/refused.c", &[], ranks, 0));
    }
}

#[test]
fn what_one_rank_refuses_is_an_error_on_all_where_calls_are_checked() {
    for ranks in [1, 3] {
        for abi in ABIS {
            start(abi, &["tests/native/refused.c"], &["told"], ranks, 0, CHOICES[3]);
        }
    }
}

#[test]
fn wishes_for_the_messages_of_a_communicator_are_kept_or_refused() {
    ABIS.into_iter().for_each(|abi| run(abi, "tests/native/wishes.c", &[], 2, 0));
}

#[test]
fn arguments_that_mean_nothing_may_be_anything() {
    for abi in ABIS {
        [1, 3].into_iter().for_each(|ranks| run(abi, "tests/native/ignored.c", &[], ranks, 0));
    }
    start(ABIS[0], &["tests/native/ignored.c"], &[], 2, 0, CHOICES[3]);
}

#[test]
fn partitions_leave_when_they_are_ready_and_arrive_one_by_one() {
    ABIS.into_iter().for_each(|abi| run(abi, "tests/native/partitioned.c", &[], 2, 0));
}

#[test]
fn tools_set_and_read_variables_and_are_told_of_messages() {
    for abi in ABIS {
        [1, 2, 3].into_iter().for_each(|ranks| run(abi, "tests/native/tools.c", &[], ranks, 0));
    }
}

#[test]
fn processes_are_started_meet_and_part() {
    for (abi, ranks) in [(ABIS[0], 1), (ABIS[1], 2), (ABIS[0], 3)] {
        run(abi, "tests/native/spawn.c", &[], ranks, 0);
    }
}

#[test]
fn without_a_launcher_that_starts_processes_there_is_an_error_that_names_one() {
    for abi in ABIS {
        let program = compile_all("c99", abi, &[source("tests/native/spawn.c")]);
        output(Command::new(program).arg("alone").env("NMAD_SAMPLE", "off"));
    }
}

#[test]
fn a_message_of_more_than_4_gib_needs_no_second_buffer() {
    run(ABIS[0], "tests/native/large.c", &[], 2, 0);
}

#[test]
fn sessions_come_and_go_with_and_without_the_world() {
    for abi in ABIS {
        [1, 3].into_iter().for_each(|ranks| run(abi, "tests/native/sessions.c", &[], ranks, 0));
        run(abi, "tests/native/sessions.c", &["beside"], 2, 0);
    }
}

#[test]
fn the_processes_of_each_program_are_a_set() {
    let mut job = job(ABIS[0], &["tests/native/sessions.c"], &["two"], 1, &[]);
    let second = Program { count: 2, ..job.programs[0].clone() };
    job.programs.push(second);
    assert_eq!(launch(job), 0);
}

/// How windows are made.
const FLAVORS: [&str; 4] = ["allocate", "create", "shared", "dynamic"];
/// Nothing is accessed but with frames, as between nodes.
const FRAMES: &[(&str, &str)] = &[("NMAD_MPI_WINDOW", "frames")];

#[test]
fn windows_of_every_flavor_are_accessed_in_every_kind_of_epoch() {
    for (turn, flavor) in FLAVORS.into_iter().enumerate() {
        for (ranks, ways) in [(1, &[][..]), (2, FRAMES), (3, &[]), (3, FRAMES)] {
            start(ABIS[turn % 2], &["tests/native/windows.c"], &[flavor], ranks, 0, ways);
        }
    }
}

#[test]
fn updates_of_windows_arrive_once_are_atomic_and_keep_their_order() {
    for (ranks, ways) in [(2, FRAMES), (4, FRAMES), (3, &[][..])] {
        start(ABIS[0], &["tests/native/window-oracle.c"], &["7", "3"], ranks, 0, ways);
    }
}

#[test]
fn an_exclusive_lock_keeps_out_who_has_locked_all_and_waits_until_all_are_unlocked() {
    for (turn, flavor) in ["allocate", "create", "dynamic"].into_iter().enumerate() {
        for (ranks, ways) in [(2, FRAMES), (4, FRAMES), (3, &[][..])] {
            let words = ["5", "300", flavor];
            start(ABIS[turn % 2], &["tests/native/window-locks.c"], &words, ranks, 0, ways);
        }
    }
}

#[test]
fn what_a_program_gets_wrong_with_windows_is_told() {
    for ways in [&[][..], FRAMES] {
        ABIS.into_iter().for_each(|abi| start(abi, &["tests/native/window-errors.c"], &[], 2, 0, ways));
    }
}

#[test]
fn a_rank_that_dies_with_a_lock_or_inside_an_epoch_is_an_error_and_no_hang() {
    for (ways, count, lines) in [(&[][..], 1, 1), (FRAMES, 2, 6)] {
        let report = tempfile::NamedTempFile::new().expect("a file");
        let words = [report.path().to_str().expect("a path in text"), "flush"];
        start(ABIS[0], &["tests/native/window-death.c"], &words[..count], 3, 137, ways);
        let told = std::fs::read_to_string(report.path()).expect("a report");
        assert_eq!(told.lines().count(), lines, "{told}");
        for line in told.lines() {
            let is_right =
                line.contains(": aborted: ") && line.contains("window") && line.contains("rank 1 is gone");
            assert!(is_right, "{told}");
        }
    }
}

#[test]
fn a_target_that_computes_is_accessed_nevertheless() {
    for ways in [&[][..], FRAMES] {
        start(ABIS[0], &["tests/native/window-passive.c"], &[], 2, 0, ways);
    }
}

#[test]
fn files_are_written_and_read_in_every_way() {
    for (turn, ranks) in [1, 2, 3, 5].into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().to_str().expect("a path in text");
        run(ABIS[turn % 2], "tests/native/files.c", &[name], ranks, 0);
        start(ABIS[turn % 2], &["tests/native/files.c"], &[name], ranks, 0, &[("NMAD_MPI_FILE", "owners")]);
    }
}

#[test]
fn files_that_the_system_refuses_or_changes_are_errors_and_no_harm() {
    for (turn, ranks) in [1, 3].into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().to_str().expect("UTF-8");
        run(ABIS[turn % 2], "tests/native/file-refusals.c", &[name], ranks, 0);
    }
}

#[test]
fn random_programs_on_files_find_what_the_standard_allows() {
    let files = ["tests/native/file-oracle.c", "tests/native/file-order.c"];
    for (turn, ranks) in [2, 3, 6].into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().to_str().expect("a path in text");
        start(ABIS[turn % 2], &files, &[name, "1", "5"], ranks, 0, &[]);
    }
}

#[test]
fn a_rank_that_dies_inside_a_write_of_all_ranks_is_an_error_and_no_hang() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().expect("a path in text").to_string();
    let words = [&*text("report"), &text("data")];
    let job = job(ABIS[0], &["tests/native/file-death.c"], &words, 3, &[]);
    assert_eq!(launch(Job { keep_going: true, ..job }), 137);
    for rank in [0, 2] {
        let told = std::fs::read_to_string(path(&format!("report.{rank}"))).expect("a report");
        assert!(told.starts_with("aborted: ") && told.contains("rank 1 is gone"), "{told}");
    }
}

#[test]
fn errors_are_told_to_the_handler_of_their_object() {
    ABIS.into_iter().for_each(|abi| run(abi, "tests/native/handlers.c", &[], 2, 0));
}

#[test]
fn functions_of_the_program_are_called_with_its_handles() {
    ABIS.into_iter().for_each(|abi| run(abi, "tests/native/callbacks.c", &[], 3, 0));
}

#[test]
fn a_receive_is_cancelled_while_another_thread_waits_for_it() {
    for abi in ABIS {
        [1, 2].into_iter().for_each(|ranks| run(abi, "tests/native/cancel.c", &[], ranks, 0));
    }
}

#[test]
fn a_wait_for_a_cancelled_send_is_local() {
    let ways: [&[(&str, &str)]; 3] = [&[], &[("NMAD_RAILS", "lo")], &[("NMAD_RAILS", "lo,shm")]];
    for (abi, variables) in ABIS.into_iter().flat_map(|abi| ways.map(|way| (abi, way))) {
        start(abi, &["tests/native/cancelled-sends.c"], &[], 2, 0, variables);
    }
}

#[test]
fn what_was_removed_is_there_for_old_programs() {
    run(Abi::Mpich, "tests/native/removed.c", &[], 1, 0);
}

/// Algorithms chosen by hand, so that each has its turn, and the check of what is called.
const CHOICES: [&[(&str, &str)]; 4] = [
    &[],
    &[
        ("NMAD_MPI_BCAST", "scatter_allgather"),
        ("NMAD_MPI_ALLGATHER", "bruck"),
        ("NMAD_MPI_ALLTOALL", "bruck"),
        ("NMAD_MPI_REDUCE", "rabenseifner"),
        ("NMAD_MPI_ALLREDUCE", "rabenseifner"),
        ("NMAD_MPI_REDUCE_SCATTER", "halving"),
        ("NMAD_MPI_SCAN", "chain"),
    ],
    &[
        ("NMAD_MPI_BCAST", "chain"),
        ("NMAD_MPI_ALLGATHER", "recursive_doubling"),
        ("NMAD_MPI_ALLTOALL", "pairwise"),
        ("NMAD_MPI_REDUCE", "chain"),
        ("NMAD_MPI_ALLREDUCE", "ring"),
        ("NMAD_MPI_REDUCE_SCATTER", "pairwise"),
        ("NMAD_MPI_GATHER", "binomial"),
        ("NMAD_MPI_SCATTER", "binomial"),
    ],
    &[("NMAD_MPI_CHECK", "1")],
];

#[test]
fn random_programs_do_what_their_seed_says() {
    const FILES: [&str; 3] =
        ["tests/native/random.c", "tests/native/random-messages.c", "tests/native/random-collectives.c"];
    for (turn, ranks) in [1, 2, 3, 5, 8].into_iter().enumerate() {
        for (seed, choice) in ["1", "2", "3", "4"].into_iter().zip(CHOICES) {
            start(ABIS[turn % 2], &FILES, &[seed, "25"], ranks, 0, choice);
        }
    }
}

#[test]
fn every_example_is_run() {
    let files = std::fs::read_dir(source("examples")).expect("examples");
    // One is run with `--ft` (survivors.rs).
    assert_eq!(files.count(), EXAMPLES.len() + 1);
}
