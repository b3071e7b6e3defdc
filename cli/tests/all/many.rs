//! More ranks than cores on several hosts: a random program, of which each rank knows what must come out.

use crate::command::run;
use crate::install::{self, source};
use std::process::Command;

#[test]
fn sixty_four_ranks_on_four_hosts_get_what_a_loop_over_the_ranks_says() {
    if let Err(refused) = nmad_testbed::available() {
        return eprintln!("skipped: {refused}");
    }
    let sources = ["random", "random-messages", "random-collectives"];
    let sources = sources.map(|name| source(&format!("mpi/front/tests/native/{name}.c")));
    let (folder, program) = install::compiled("random", &sources);
    // With the second algorithm each rank has more than four peers on other hosts at once.
    for (seed, algorithm) in [("1", "auto"), ("2", "two_level")] {
        let mut command = Command::new(install::prefix().join("bin/nmad"));
        command.args(["testbed", "--hosts", "4", "--"]).arg(install::prefix().join("bin/mpiexec"));
        command.args(["--timeout", "120", "-n", "64"]).arg(&program).args([seed, "20"]);
        command.env("NMAD_MPI_ALLTOALL", algorithm).env("XDG_CACHE_HOME", folder.path());
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(0), "{seed}: {}", ended.err);
    }
}
