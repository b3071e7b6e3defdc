//! Processes that a running one asks for: of its launcher, or of one that it starts itself if it has none.

use std::path::Path;
use std::process::Command;

use crate::probe::{PROBE, ranks};

/// What the process says that has met those that it asked for: words that a command line knows stay words.
const MET: &str = "met 2 processes, [\":\", \"two words\"]\n";

/// A process without a launcher, with one folder in `PATH` in which `links` are; its output and messages.
fn alone(links: &[(&str, &str)], words: &[&str]) -> (bool, String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, target) in links {
        std::os::unix::fs::symlink(target, folder.path().join(name)).expect("a link");
    }
    let mut command = Command::new(PROBE);
    command.args(["rank", "spawn"]).args(words).env("PATH", folder.path()).env_remove("NMAD_TESTBED");
    let done = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.success(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn a_launcher_starts_what_its_ranks_ask_for() {
    let done = ranks(&["-n", "1"], &["spawn"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, MET, ""));
}

#[test]
fn a_process_without_a_launcher_starts_one() {
    for name in ["nmad", "mpiexec"] {
        assert_eq!(alone(&[(name, PROBE)], &[]), (true, MET.into(), String::new()), "{name}");
    }
}

#[test]
fn what_cannot_be_started_is_told_in_plain_words() {
    assert!(Path::new("/bin/false").exists());
    for (links, words, expected) in [
        (&[][..], &[][..], "was not started by mpiexec, and neither nmad nor mpiexec is in PATH"),
        (&[("mpiexec", "/bin/false")], &[], "mpiexec has started nothing: is it that of another MPI?"),
        (&[("nmad", PROBE)], &["no-such-program"], "cannot start rank 0: no-such-program: No such file"),
    ] {
        let (is_done, out, err) = alone(links, words);
        assert!(!is_done && out.is_empty() && err.contains(expected), "{links:?}: {out} {err}");
    }
    let done = ranks(&["-n", "1"], &["spawn", "no-such-program"]);
    let words = "the launcher has started no processes: cannot start rank 0: no-such-program: No such file";
    assert!(done.code != 0 && done.err.contains(words), "{done:?}");
}

#[test]
fn neither_needs_a_network() {
    // A network namespace of its own, in which even lo is down.
    let flag = if rustix::process::geteuid().is_root() { "--net" } else { "-rn" };
    for words in [&["run", "-n", "2", PROBE, "rank", "spawn"][..], &["rank", "spawn"]] {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(PROBE, folder.path().join("nmad")).expect("a link");
        let mut command = Command::new("/usr/bin/unshare");
        command.args([flag, PROBE]).args(words).env("PATH", folder.path()).env_remove("NMAD_TESTBED");
        let done = command.output().expect("it runs");
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let rounds = out.lines().filter(|line| MET.contains(line)).count();
        let expected = if words[0] == "run" { 2 } else { 1 };
        assert!(done.status.success() && rounds == expected, "{words:?}: {out} {err}");
    }
}
