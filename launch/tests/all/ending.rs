//! How jobs end: codes, reasons, and nobody left behind.

use std::time::Instant;

use crate::probe::{Launcher, PROBE, launch, ranks};

#[test]
fn the_code_is_zero_or_the_first_failure() {
    assert_eq!(launch(&["-n", "3", "true"]).code, 0);
    let done = launch(&["-n", "1", "sh", "-c", "exit 3"]);
    assert_eq!(done.code, 3);
    assert!(done.err.contains("rank 0 (pid ") && done.err.contains("exited with code 3"), "{done:?}");
    assert_eq!(launch(&["sh", "-c", "kill -KILL $$"]).code, 128 + 9);
}

#[test]
fn a_failing_rank_ends_those_that_never_would() {
    let done = launch(&["-n", "3", "sh", "-c", "test $PMI_RANK = 1 && exit 7; exec sleep 600"]);
    assert_eq!(done.code, 7, "{done:?}");
    assert_eq!(done.err.matches('\n').count(), 1, "one clear message: {done:?}");
    assert!(done.err.starts_with("nmad: rank 1 (pid ") && done.err.ends_with("; ending the other ranks\n"));
}

#[test]
fn a_killed_rank_ends_the_others_in_their_fence() {
    let done = ranks(&["-n", "4"], &["crash", "2"]);
    assert_eq!(done.code, 128 + 11, "{done:?}");
    assert!(
        done.err.contains("nmad: rank 2 (pid ") && done.err.contains("was killed by SIGSEGV"),
        "{done:?}"
    );
}

#[test]
fn ranks_that_ignore_sigterm_are_killed() {
    let start = Instant::now();
    let script = "trap '' TERM; test $PMI_RANK = 1 && exit 4; while :; do sleep 600; done";
    let done = launch(&["-n", "2", "bash", "-c", script]);
    assert_eq!(done.code, 4, "{done:?}");
    assert!(start.elapsed().as_secs() < 30, "it took {:?}", start.elapsed());
}

#[test]
fn leaving_without_goodbye_is_told() {
    let done = ranks(&["-n", "3"], &["leave", "0"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("without calling MPI_Finalize"), "{done:?}");
    for name in ["nmad_close", "Session::close"] {
        assert!(done.err.contains(name), "{done:?}");
    }
    let done = ranks(&["-n", "3"], &["leave", "6"]);
    assert_eq!(done.code, 6, "{done:?}");
}

#[test]
fn a_bad_code_after_goodbye_is_only_a_code() {
    let done = ranks(&["-n", "3"], &["late", "1"]);
    assert_eq!((done.code, done.err.as_str()), (5, ""));
}

#[test]
fn a_fence_that_cannot_be_complete_ends_the_job() {
    let done = ranks(&["-n", "3"], &["early", "1"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("in a fence that rank 1 will never join"), "{done:?}");
}

#[test]
fn an_abort_has_its_code_and_reason() {
    for (given, code) in [("6", 6), ("0", 0), ("256", 0), ("511", 255)] {
        let done = ranks(&["-n", "3"], &["abort", given]);
        assert_eq!(done.code, code, "{done:?}");
        let reason = format!("rank 1 asked to end the job with code {given}: the disk is full");
        assert!(done.err.contains(&reason), "{done:?}");
    }
}

#[test]
fn others_go_on_where_the_user_wants_it() {
    let script = "test $PMI_RANK = 1 && exit 7; sleep 0.3; echo done $PMI_RANK";
    let words = "exited with code 7; the others go on (--ft)";
    for (option, code, told) in
        [("--keep-going", 7, ""), ("--ft", 0, words), ("-disable-auto-cleanup", 0, words)]
    {
        let done = launch(&[option, "-n", "3", "sh", "-c", script]);
        assert_eq!((done.code, done.err.is_empty()), (code, told.is_empty()), "{done:?}");
        assert!(done.out.contains("done 0") && done.out.contains("done 2"), "{done:?}");
        assert!(done.err.contains(told), "{done:?}");
    }
}

#[test]
fn a_rank_that_another_cannot_reach_is_ended_and_two_are_not() {
    let script = "trap '' TERM; case $PMI_RANK in 2) ;; *) \
                  echo cmd=nmad_unreachable rank=$((1 - PMI_RANK)) >&$PMI_FD;; esac; \
                  echo $PMI_RANK saw $(od -An -td4 -N4 <&$NMAD_DEATHS_FD)";
    let done = launch(&["--ft", "-n", "3", "bash", "-c", script]);
    assert_eq!(done.code, 0, "{done:?}");
    let ended = if done.err.contains("rank 0 cannot reach rank 1") { 1 } else { 0 };
    let words = format!("rank {} cannot reach rank {ended} ", 1 - ended);
    assert_eq!(done.err.matches("cannot reach").count(), done.err.matches(&words).count(), "{done:?}");
    let mut lines: Vec<&str> = done.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, [format!("{} saw {ended}", 1 - ended), format!("2 saw {ended}")], "{done:?}");
}

#[test]
fn the_variables_of_hydra_are_obeyed() {
    for (name, value, code, words) in [
        ("MPIEXEC_TIMEOUT", "0.2", 124, "the time limit of 0.2 s is over"),
        ("MPIEXEC_TIMEOUT", "soon", 2, "MPIEXEC_TIMEOUT is \"soon\""),
        ("HYDRA_LAUNCHER", "teleport", 2, "HYDRA_LAUNCHER is \"teleport\""),
    ] {
        let done = Launcher::start(&["-n", "2", "sleep", "600"], &[(name, value)]).done();
        assert!(done.code == code && done.err.contains(words), "{done:?}");
    }
}

#[test]
fn the_time_limit_ends_the_job() {
    let done = launch(&["-n", "2", "--timeout", "0.2", "sleep", "600"]);
    assert_eq!(done.code, 124, "{done:?}");
    assert!(done.err.contains("the time limit of 0.2 s is over"), "{done:?}");
}

#[test]
fn a_program_that_cannot_start_says_why() {
    for (program, code, words) in [
        ("no-such-program", 127, "it is not in PATH"),
        ("./no-such-program", 127, "is the path right?"),
        ("/", 126, "it is a folder"),
    ] {
        let done = launch(&["-n", "2", program]);
        assert_eq!(done.code, code, "{done:?}");
        assert!(done.err.contains("cannot start rank 0") && done.err.contains(words), "{done:?}");
    }
}

#[test]
fn a_wrong_command_line_explains_itself() {
    let done = launch(&["-n", "0", "true"]);
    assert_eq!(done.code, 2, "{done:?}");
    let done = launch(&["-n", "abc", "true"]);
    assert!(done.code == 2 && done.err.contains("number of ranks, 1 to"), "{done:?}");
    let done = launch(&["--mca", "btl", "self", "-n", "1", "true"]);
    assert_eq!((done.code, done.err.matches("--mca btl self").count()), (0, 1), "{done:?}");
    let done = launch(&["--hosts-from", "/no/such/file", "true"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("cannot read the host list"), "{done:?}");
}

#[test]
fn children_of_a_rank_end_with_it() {
    let done = launch(&["-n", "2", "sh", "-c", "sleep 600 & echo started"]);
    // Had the sleeps survived, they would hold the output open and this would not return.
    assert_eq!((done.code, done.out.as_str()), (0, "started\nstarted\n"));
}

#[test]
fn a_killed_launcher_leaves_nobody() {
    let launcher =
        Launcher::start(&["-n", "3", "bash", "-c", "trap '' TERM HUP; sleep 600 & echo up; wait"], &[]);
    for _ in 0..3 {
        assert_eq!(launcher.line(), "up\n");
    }
    launcher.signal(rustix::process::Signal::KILL);
    assert_eq!(launcher.all_gone(), [] as [&str; 0]);
}

#[test]
fn a_rank_notices_that_its_launcher_died() {
    // In a session of its own the waiting process escapes the guard, and it is not the launcher's child.
    let script = format!("test $PMI_RANK = 0 && setsid -f {PROBE} rank wait; exec sleep 600");
    let launcher = Launcher::start(&["-n", "2", "sh", "-c", &script], &[]);
    assert_eq!(launcher.line(), "waiting\n");
    launcher.signal(rustix::process::Signal::KILL);
    let done = launcher.done();
    assert!(done.err.contains("closed its connection while this rank waited in a fence"), "{done:?}");
}
