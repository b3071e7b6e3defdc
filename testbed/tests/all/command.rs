//! The command: exit codes, signals, life and death, and what a program inside can do.

use nmad_testbed::Inside;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_nmad-testbed");

/// Whether namespaces are allowed here; if not, says why the test is skipped.
fn allowed() -> bool {
    nmad_testbed::available().map_err(|refused| eprintln!("skipped: {refused}")).is_ok()
}

fn nmad(words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_remove("NMAD_TESTBED");
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Exit code, standard output and standard error.
fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let output = nmad(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Starts a testbed and returns with it what its program printed first.
fn start(words: &[&str]) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = nmad(words).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    (child, output, line.trim().to_owned())
}

fn kill(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

fn interface_count() -> usize {
    std::fs::read_to_string("/proc/net/dev").unwrap().lines().count()
}

#[test]
fn the_exit_code_is_the_programs() {
    if !allowed() {
        return;
    }
    assert_eq!(run(&["--", "sh", "-c", "exit 7"]).0, Some(7));
    assert_eq!(run(&["--", "sh", "-c", "kill -9 $$"]).0, Some(128 + 9));
    assert_eq!(run(&["--", "/no-such-program"]).0, Some(127));
    assert_eq!(run(&["--", "/etc/passwd"]).0, Some(126));
}

#[test]
fn wrong_orders_explain_themselves() {
    let (code, _, said) = run(&["--hosts", "1", "--", "true"]);
    assert_eq!((code, said.contains("2 to 250")), (Some(125), true), "{said}");
    let (code, _, said) = run(&["--rails", "4gbit,foo", "--", "true"]);
    assert_eq!((code, said.contains("'foo' is not a rate")), (Some(2), true), "{said}");
    let (code, _, said) = run(&["--set", "r0=down"]);
    assert_eq!((code, said.contains("does not run in a testbed")), (Some(125), true), "{said}");
}

#[test]
fn a_signal_reaches_the_program() {
    if !allowed() {
        return;
    }
    let script = "trap 'exit 3' TERM; echo ready; while :; do read line; done";
    let mut command = nmad(&["--", "sh", "-c", script]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    kill(&child, Signal::TERM);
    // The shell runs its trap when its read is interrupted; standard input must stay open until then.
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(input);
}

#[test]
fn what_runs_on_in_the_background_ends_with_the_testbed() {
    if !allowed() {
        return;
    }
    let (code, pid, _) = run(&["--", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"]);
    assert_eq!(code, Some(0));
    let namespace = format!("/proc/{}/ns/net", pid.trim());
    assert!(std::fs::metadata(&namespace).is_err(), "{namespace} is still there");
}

#[test]
fn a_killed_testbed_leaves_nothing_behind() {
    if !allowed() {
        return;
    }
    let interfaces = interface_count();
    let script = "setsid sleep 1000 & echo $NMAD_TESTBED; exec sleep 1000";
    let (mut child, mut output, environment) = start(&["--hosts", "3", "--", "sh", "-c", script]);
    let inside: Inside = environment.parse().unwrap();
    let holders: Vec<OwnedFd> = inside.hosts.iter().map(|host| watch(host.prefix.last().unwrap())).collect();
    kill(&child, Signal::KILL);
    child.wait().unwrap();
    // It ends when no program in any host has the other end of this pipe any more.
    output.read_to_end(&mut Vec::new()).unwrap();
    for holder in &holders {
        poll(&mut [PollFd::new(holder, PollFlags::IN)], None).unwrap();
    }
    for host in &inside.hosts {
        let namespace = format!("/proc/{}/ns/net", host.prefix.last().unwrap());
        assert!(std::fs::metadata(&namespace).is_err(), "{namespace} is still there");
    }
    assert_eq!(interface_count(), interfaces);
}

/// Something that becomes readable when the process ends.
fn watch(pid: &str) -> OwnedFd {
    pidfd_open(Pid::from_raw(pid.parse().unwrap()).unwrap(), PidfdFlags::empty()).unwrap()
}

#[test]
fn a_program_inside_runs_others_in_other_hosts() {
    if !allowed() {
        return;
    }
    // The prefix is the part behind `host1=`.
    let script = "${NMAD_TESTBED##*host1=} cat /proc/sys/kernel/hostname; pwd";
    let prefix = "prefix=\"${NMAD_TESTBED##*host1=}\"; $prefix cat /proc/sys/kernel/hostname; $prefix pwd";
    for script in [script, prefix] {
        let (code, said, _) = run(&["--", "sh", "-c", script]);
        let here = std::env::current_dir().unwrap();
        assert_eq!((code, said), (Some(0), format!("host1\n{}\n", here.display())));
    }
}

#[test]
fn a_program_inside_changes_rails() {
    if !allowed() {
        return;
    }
    let script =
        format!("{PROGRAM} --set r1=down --set host1:r0=500mbit --set r0=mtu:9000 && {PROGRAM} --show");
    let (code, said, complaint) = run(&["--rails", "max,max", "--", "sh", "-c", &script]);
    assert_eq!(code, Some(0), "{complaint}");
    let rails: Vec<Vec<&str>> =
        said.lines().skip(1).map(|line| line.split_whitespace().take(5).collect()).collect();
    assert_eq!(
        rails,
        [
            ["host0", "r0", "up", "max", "9000"],
            ["host0", "r1", "down", "max", "1500"],
            ["host1", "r0", "up", "500mbit", "9000"],
            ["host1", "r1", "down", "max", "1500"],
        ]
    );
    let script = format!("{PROGRAM} --set host7:r0=up || {PROGRAM} --set r5=up");
    let (code, _, complaint) = run(&["--", "sh", "-c", &script]);
    assert_eq!(code, Some(125));
    assert!(complaint.contains("no host host7") && complaint.contains("no rail r5"), "{complaint}");
}

#[test]
fn a_testbed_inside_a_testbed_is_another_testbed() {
    if !allowed() {
        return;
    }
    let script = format!("{PROGRAM} --hosts 3 -- {PROGRAM} --show --json");
    let (code, said, complaint) = run(&["--", "sh", "-c", &script]);
    assert_eq!(code, Some(0), "{complaint}");
    assert!(said.contains(r#""name":"host2""#), "{said}");
}
