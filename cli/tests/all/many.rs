//! Random programs, of which each rank knows what must come out: more ranks than cores on several hosts, and
//! hosts behind several switches.

use crate::command::{Ended, run};
use crate::install::{self, source};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The program, in a folder for its profiles; `None` if no testbed can be made here, which the test then
/// prints.
fn program() -> Option<(TempDir, PathBuf)> {
    if let Err(refused) = nmad_testbed::available() {
        eprintln!("skipped: {refused}");
        return None;
    }
    let sources = ["random", "random-messages", "random-collectives"];
    let sources = sources.map(|name| source(&format!("mpi/front/tests/native/{name}.c")));
    Some(install::compiled("random", &sources))
}

/// Runs the program and arguments `words` on `ranks` ranks of four hosts, with these settings.
fn on_four_hosts(folder: &TempDir, ranks: &str, settings: &[(&str, &str)], words: &[&str]) -> Ended {
    let mut command = Command::new(install::prefix().join("bin/nmad"));
    command.args(["testbed", "--hosts", "4", "--"]).arg(install::prefix().join("bin/mpiexec"));
    command.args(["--timeout", "120", "-n", ranks]).args(words);
    command.envs(settings.iter().copied()).env("XDG_CACHE_HOME", folder.path());
    run(&mut command)
}

#[test]
fn sixty_four_ranks_on_four_hosts_get_what_a_loop_over_the_ranks_says() {
    let Some((folder, program)) = program() else { return };
    let program = program.to_str().expect("a path");
    // With the second algorithm each rank has more than four peers on other hosts at once.
    for (seed, algorithm) in [("1", "auto"), ("2", "two_level")] {
        let settings = [("NMAD_MPI_ALLTOALL", algorithm)];
        let ended = on_four_hosts(&folder, "64", &settings, &[program, seed, "20"]);
        assert_eq!(ended.code, Some(0), "{seed}: {}", ended.err);
    }
}

#[test]
fn hosts_of_a_switch_are_a_level_of_collectives() {
    let Some((folder, program)) = program() else { return };
    let program = program.to_str().expect("a path");
    // Ranks go to hosts by turns; the first two hosts and the last two have a switch each.
    let script = "export NMAD_MPI_SWITCH=s$((PMI_RANK % 4 / 2)); exec \"$@\"";
    let mut settings = vec![("NMAD_MPI_EXPLAIN", "1"), ("NMAD_MPI_TAPER", "2")];
    let families = ["BCAST", "REDUCE", "ALLREDUCE", "ALLGATHER", "GATHER", "SCATTER", "SCAN", "ALLTOALL"];
    let names = families.map(|family| format!("NMAD_MPI_{family}"));
    settings.extend(names.iter().map(|name| (&**name, "two_level")));
    for (ranks, seed) in [("4", "3"), ("8", "4"), ("7", "5")] {
        let ended =
            on_four_hosts(&folder, ranks, &settings, &["sh", "-c", script, "sh", program, seed, "25"]);
        assert_eq!(ended.code, Some(0), "{seed}: {}", ended.err);
        assert!(ended.err.contains(&format!(" over {ranks} ranks: two_level (asked for")), "{}", ended.err);
    }
    // Without switches one rank a host is one level.
    let ended = on_four_hosts(&folder, "4", &settings, &[program, "3", "25"]);
    assert!(ended.code == Some(0) && !ended.err.contains("two_level (asked for"), "{}", ended.err);
}
