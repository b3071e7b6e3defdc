//! Jobs on hosts with difficult networks: IPv6 only, interfaces without a way to the other host, equal
//! addresses on both hosts, no network. Jobs start, connect, spawn and send, and print only their results.

use crate::command::{Ended, run};
use crate::install::{self, source};
use nmad_testbed::{Rate, Spec, Testbed};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Output of four ranks on two hosts.
const APART: &str = "4 ranks, 2 on this node, 4 right, 1 connected, 2 spawned\n";
/// Output of two ranks on one host.
const TOGETHER: &str = "2 ranks, 2 on this node, 2 right, 1 connected, 2 spawned\n";

/// A program of this folder, compiled with the installed mpicc, in a folder for other files.
pub(crate) fn program(name: &str) -> (TempDir, PathBuf) {
    install::compiled(name, &[source(&format!("cli/tests/all/networks/{name}.c"))])
}

/// Returns two hosts joined by rails; `None` if no testbed can be made here, which the test then prints.
pub(crate) fn hosts(rails: usize) -> Option<Testbed> {
    if let Err(refused) = nmad_testbed::available() {
        eprintln!("skipped: {refused}");
        return None;
    }
    let enter = Some(PathBuf::from(env!("CARGO_BIN_EXE_nmad")));
    Some(Testbed::build(&Spec { enter, ..Spec::new(2, vec![Rate::Unlimited; rails]) }).expect("a testbed"))
}

/// Adds interfaces to both hosts: up, with equal addresses on both, and without a way to the other host.
fn add_nowhere(testbed: &Testbed) {
    for host in testbed.hosts() {
        for (name, own, has_carrier) in [
            ("docker0", "172.17.0.1", false),
            ("virbr0", "192.168.122.1", false),
            ("wlan0", "192.168.7.1", true),
            ("wlan1", "fd66::1", true),
        ] {
            let own: IpAddr = own.parse().expect("an address");
            host.add_nowhere(name, own, has_carrier).expect("an interface");
        }
    }
}

/// Runs `meet` with two ranks on each of these machines. The launcher runs on the first host and starts
/// agents by a script in place of ssh; no variable says that this is a testbed.
fn meet(testbed: &Testbed, machines: [IpAddr; 2], variables: &[(&str, &str)]) -> Ended {
    let (folder, program) = program("meet");
    let script = folder.path().join("agent");
    let prefix = |host: u32| testbed.host(host).prefix().join(" ");
    let lines = format!(
        "#!/bin/sh\nmachine=$1\nshift\ncase $machine in\n{}) exec {} sh -c \"exec $*\" ;;\n\
         *) exec {} sh -c \"exec $*\" ;;\nesac\n",
        machines[0],
        prefix(0),
        prefix(1)
    );
    std::fs::write(&script, lines).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it may be executed");
    let list = machines.map(|machine| format!("[{machine}]:2")).join(",");
    let list = if machines[0].is_ipv4() { list.replace(['[', ']'], "") } else { list };
    let mut command = Command::new(install::prefix().join("bin/mpiexec"));
    command.args(["--timeout", "90", "-launcher-exec"]).arg(script).args(["-hosts", &list, "-n", "4"]);
    command.arg(program).envs(variables.iter().copied());
    testbed.place(0, &mut command).expect("the host is there");
    run(command.env_remove(nmad_testbed::ENVIRONMENT))
}

/// Runs `meet` with two ranks on the first host.
fn meet_there(testbed: &Testbed) -> Ended {
    let (_folder, program) = program("meet");
    let mut command = Command::new(install::prefix().join("bin/mpiexec"));
    command.args(["--timeout", "90", "-n", "2"]).arg(program);
    testbed.place(0, &mut command).expect("the host is there");
    run(command.env_remove(nmad_testbed::ENVIRONMENT))
}

fn v4(testbed: &Testbed) -> [IpAddr; 2] {
    [0, 1].map(|host| testbed.host(host).addr(0).into())
}

fn v6(testbed: &Testbed) -> [IpAddr; 2] {
    [0, 1].map(|host| testbed.host(host).addr6(0).into())
}

fn is_quiet(ended: &Ended, expected: &str) {
    assert_eq!((ended.code, &*ended.out, &*ended.err), (Some(0), expected, ""));
}

#[test]
fn hosts_that_share_only_ipv6_start_connect_spawn_and_send() {
    let Some(testbed) = hosts(1) else { return };
    testbed.set_ipv4(0, false).expect("an address to take away");
    for driver in ["tcp", "udp"] {
        is_quiet(&meet(&testbed, v6(&testbed), &[("NMAD_DRIVER", driver)]), APART);
    }
    is_quiet(&meet_there(&testbed), TOGETHER);
}

#[test]
fn interfaces_that_lead_nowhere_or_that_both_hosts_have_cost_no_word() {
    let Some(testbed) = hosts(1) else { return };
    add_nowhere(&testbed);
    // Both wait for addresses that do not answer.
    std::thread::scope(|scope| {
        let testbed = &testbed;
        for variables in [&[][..], &[("NMAD_DRIVER", "udp")]] {
            scope.spawn(move || is_quiet(&meet(testbed, v4(testbed), variables), APART));
        }
    });
    testbed.set_ipv4(0, false).expect("an address to take away");
    is_quiet(&meet(&testbed, v6(&testbed), &[]), APART);
    is_quiet(&meet_there(&testbed), TOGETHER);
}

#[test]
fn where_no_rail_leads_to_the_other_host_the_error_names_those_that_were_tried() {
    let Some(testbed) = hosts(1) else { return };
    add_nowhere(&testbed);
    // The launcher's channel uses r0; the ranks must use interfaces without a way to the other host.
    let ended = meet(&testbed, v4(&testbed), &[("NMAD_RAILS", "wlan0,docker0")]);
    // The ranks print an error of MPI that names the rails; at most one more line is about a rail.
    assert!(ended.code != Some(0) && ended.out.is_empty(), "{}", ended.err);
    let is_named =
        (0..4).any(|rank| ended.err.contains(&format!("MPI_Init: rank {rank} is gone: rail tcp/")));
    assert!(is_named && ended.err.contains("docker0"), "{}", ended.err);
    let of_rails = ended.err.lines().filter(|line| line.starts_with("nmad: rail"));
    assert!(of_rails.count() <= 1, "{}", ended.err);
}

#[test]
fn without_any_network_a_job_of_one_host_starts_connects_spawns_and_sends() {
    let (_folder, program) = program("meet");
    // In a new network namespace lo is down.
    let mut command = Command::new("unshare");
    command.arg("-rn").arg(install::prefix().join("bin/mpiexec")).args(["--timeout", "90", "-n", "2"]);
    let ended = run(command.arg(program));
    if ended.err.contains("unshare") {
        return eprintln!("skipped: {}", ended.err);
    }
    is_quiet(&ended, TOGETHER);
}
