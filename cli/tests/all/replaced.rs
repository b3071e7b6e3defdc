//! Hosts that are lost. A program replaces the ranks of one (docs/ranks-die.md); its hosts are names of this
//! machine. Of two hosts without a network between them one goes on. That waits for long, so it is not among
//! [`crate::networks`], which wait as well: tests run in the order of their names.

use crate::command::run;
use crate::install::{compiled, prefix};
use crate::networks::{hosts, program};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// The sum that five ranks compute without a failure.
const SUM: &str = "sum 9.787606036044 after 2000 rounds of 5 ranks\n";

#[test]
fn ranks_of_a_lost_host_are_replaced_on_the_others() {
    let (folder, program) = compiled("restart", &[prefix().join("share/doc/nmad/examples/restart.c")]);
    // Stands in for ssh: writes its process number to the file of the host's name, then becomes the agent.
    let (place, script) = (folder.path().display(), folder.path().join("agent"));
    let lines = format!(
        "#!/bin/sh\necho $$ >{place}/new-$1 && mv {place}/new-$1 {place}/$1\nshift\nexec sh -c \"exec $*\"\n"
    );
    std::fs::write(&script, lines).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it may be executed");
    let mut command = Command::new(prefix().join("bin/mpiexec"));
    command.args(["--timeout", "60", "--ft", "-launcher-exec"]).arg(&script);
    command.args(["-hosts", "a:2,b:2,c:1", "--map-by", "node", "-n", "5"]).arg(&program).arg("4");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a launcher");
    // The result does not depend on when the host is lost, as long as all ranks have passed MPI_Init.
    let (mut lines, mut err) = (BufReader::new(child.stderr.take().expect("a pipe")), String::new());
    while !err.contains("ranks compute") {
        assert!(lines.read_line(&mut err).expect("text") > 0, "{err}");
    }
    let agent = std::fs::read_to_string(folder.path().join("b")).expect("its agent was started");
    assert_eq!(run(Command::new("kill").args(["-9", agent.trim()])).code, Some(0));
    lines.read_to_string(&mut err).expect("text");
    let ended = child.wait_with_output().expect("it ends");
    let out = String::from_utf8(ended.stdout).expect("text");
    assert_eq!((ended.status.code(), out.as_str()), (Some(0), SUM), "{err}");
    assert!(err.contains("lost host b: "), "{err}");
}

/// Each half of the ranks loses the other half, and only one of them goes on.
#[test]
fn of_hosts_that_lose_all_networks_between_them_one_goes_on() {
    let Some(testbed) = hosts(2) else { return };
    let (_folder, program) = program("cut");
    let mut command = Command::new(prefix().join("bin/mpiexec"));
    command.args(["--timeout", "90", "--ft", "-n", "4"]).arg(program);
    command.env(nmad_testbed::ENVIRONMENT, testbed.environment());
    testbed.place(0, &mut command).expect("the host is there");
    let mut job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a launcher");
    let mut lines = BufReader::new(job.stdout.take().expect("its output"));
    let mut out = String::new();
    lines.read_line(&mut out).expect("text");
    for rail in 0..2 {
        testbed.set_link(0, rail, false).expect("a rail");
    }
    lines.read_to_string(&mut out).expect("text");
    let ended = job.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.code(), out.as_str()), (Some(0), "up\nright\n"), "{err}");
    assert!(err.contains(" cannot reach rank "), "{err}");
}
