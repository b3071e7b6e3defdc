//! Windows whose ranks are on several hosts.

use crate::command::run;
use crate::install;
use std::process::Command;

/// Hosts, and ranks.
const JOBS: [(&str, &str); 3] = [("2", "2"), ("2", "5"), ("4", "4")];

#[test]
fn between_hosts_an_exclusive_lock_keeps_out_who_has_locked_all() {
    if let Err(refused) = nmad_testbed::available() {
        eprintln!("skipped: {refused}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("window-locks");
    let source = format!("{}/../mpi/front/tests/native/window-locks.c", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(install::prefix().join("bin/mpicc"));
    let ended = run(command.args(["-Wall", "-Werror", "-O1", &source, "-o"]).arg(&program));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    for ((hosts, ranks), flavor) in JOBS.into_iter().zip(["allocate", "create", "dynamic"]) {
        let mut command = Command::new(install::prefix().join("bin/nmad"));
        command.args(["testbed", "--hosts", hosts, "--rails", "1gbit,1gbit", "--"]);
        command.arg(install::prefix().join("bin/mpiexec")).args(["--timeout", "90", "-n", ranks]);
        let ended = run(command.arg(&program).args(["11", "150", flavor]).env("NMAD_SAMPLE", "off"));
        assert_eq!(ended.code, Some(0), "{ranks} ranks on {hosts} hosts, {flavor}: {}", ended.err);
    }
}
