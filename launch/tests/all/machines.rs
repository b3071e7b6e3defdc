//! Jobs on several machines, which are this one under several names: agents are started through a script that
//! takes a host and a command, as ssh does, and all that follows is as between machines.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::probe::{Done, Launcher, PROBE};
use rustix::process::{Pid, Signal, kill_process};

/// The death of a host has to end the job within this time.
const NOTICED: Duration = Duration::from_secs(5);

/// Machines, and what leads to them.
pub(crate) struct Machines {
    pub(crate) folder: tempfile::TempDir,
}

impl Machines {
    /// `WHERE` tells a rank its machine, and the file of that name has the process of its agent.
    pub(crate) fn new() -> Machines {
        Machines::behind("exec sh -c \"exec $*\"")
    }

    /// The same with another end of the script.
    fn behind(end: &str) -> Machines {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            "#!/bin/sh\nexport WHERE=$1\nshift\necho $$ >{}/$WHERE\n{end}\n",
            folder.path().display()
        );
        let path = folder.path().join("agent");
        std::fs::write(&path, script).expect("a script");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("it may be executed");
        Machines { folder }
    }

    pub(crate) fn start_with(&self, words: &[&str], env: &[(&str, &str)]) -> Launcher {
        let agent = self.folder.path().join("agent");
        let mut all = vec!["-launcher-exec", agent.to_str().expect("text")];
        all.extend(words);
        Launcher::start(&all, env)
    }

    fn start(&self, words: &[&str]) -> Launcher {
        self.start_with(words, &[])
    }

    fn run(&self, words: &[&str]) -> Done {
        self.start(words).done()
    }

    /// Runs one of the probe's ranks.
    fn ranks(&self, options: &[&str], words: &[&str]) -> Done {
        self.run(&[options, &[PROBE, "rank"], words].concat())
    }

    pub(crate) fn agent_of(&self, host: &str) -> Pid {
        // The script has made the file before it writes its number.
        let begun = Instant::now();
        loop {
            let text = std::fs::read_to_string(self.folder.path().join(host)).expect("it was started");
            if let Some(agent) = text.trim().parse().ok().and_then(Pid::from_raw) {
                return agent;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no number: '{text}'");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn file(&self, text: &str) -> String {
        let path: PathBuf = self.folder.path().join("hosts");
        std::fs::write(&path, text).expect("it is written");
        path.to_str().expect("text").to_owned()
    }
}

/// The lines of output, sorted.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn ranks_of_all_machines_meet() {
    let machines = Machines::new();
    let done = machines.ranks(&["-hosts", "a:2,b:1,c:2", "-n", "6"], &["ring"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let secret =
        done.out.lines().next().expect("a line").split("secret").nth(1).expect("a secret").to_owned();
    for (rank, local, locals, host) in
        [(0, 0, 3, "a"), (1, 1, 3, "a"), (2, 0, 1, "b"), (3, 0, 2, "c"), (4, 1, 2, "c"), (5, 2, 3, "a")]
    {
        let start =
            format!("rank {rank} of 6 nodes [0, 0, 1, 2, 2, 0] local {local}/{locals} where \"{host}\"");
        let line = done.out.lines().find(|line| line.starts_with(&start));
        assert!(line.is_some_and(|line| line.ends_with(&secret)), "{start} in {done:?}");
    }
}

#[test]
fn many_machines_are_reached_through_each_other() {
    let machines = Machines::new();
    let hosts: Vec<String> = (0..40).map(|host| format!("h{host}")).collect();
    let done = machines.ranks(&["-hosts", &hosts.join(",")], &["ring"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert_eq!(done.out.lines().count(), 40, "a rank for each slot");
    assert!(done.out.contains("rank 39 of 40") && done.out.contains("where \"h39\""), "{done:?}");
    // Agents of half of them were started by others, not by the launcher.
    let failing = Machines::behind("test $WHERE = h39 && exit 3; exec sh -c \"exec $*\"");
    let done = failing.run(&["-hosts", &hosts.join(","), "true"]);
    assert!(done.code == 1 && done.err.contains("cannot start ranks on h39"), "{done:?}");
}

#[test]
fn lists_of_machines_come_in_several_forms() {
    let machines = Machines::new();
    let say = ["sh", "-c", "echo $PMI_RANK $WHERE"];
    let file = machines.file("# ours\na slots=2\nb:1\n");
    for (options, expected) in [
        (vec!["-f", &file], vec!["0 a", "1 a", "2 b"]),
        (vec!["-hostfile", &file, "-n", "2"], vec!["0 a", "1 a"]),
        (vec!["--machinefile", &file, "-ppn", "1", "-n", "3"], vec!["0 a", "1 b", "2 a"]),
        (vec!["-hosts", "a:2,b:2", "--map-by", "node"], vec!["0 a", "1 b", "2 a", "3 b"]),
        (vec!["-hosts", "a,b", "--map-by", "ppr:2:node"], vec!["0 a", "1 a", "2 b", "3 b"]),
        (vec!["-hosts", "a,b", "-n", "1"], vec!["0 a"]),
    ] {
        let done = machines.run(&[&options[..], &say].concat());
        assert_eq!((done.code, sorted(&done.out)), (0, expected), "{options:?}: {done:?}");
    }
    let from_hydra = [("HYDRA_HOST_FILE", file.as_str())];
    let done = machines.start_with(&say, &from_hydra).done();
    assert_eq!(sorted(&done.out), ["0 a", "1 a", "2 b"], "{done:?}");
}

#[test]
fn this_machine_is_known_by_its_names_and_addresses() {
    // Were it taken for another one, the script would run.
    let machines = Machines::behind("exit 9");
    let own = nmad_launch::host_name();
    for name in ["localhost", "127.0.0.1", "127.0.1.1", "[::1]", "localhost.localdomain", &own] {
        let list = format!("{name}:2");
        let file = machines.file(&format!("{name} slots = 2\r\n"));
        for options in [["-hosts", list.as_str()], ["-f", &file]] {
            let done = machines.run(&[&options[..], &["echo", "here"]].concat());
            assert_eq!((done.code, done.out.as_str()), (0, "here\nhere\n"), "{options:?}: {done:?}");
        }
    }
    for options in [["-bootstrap", "fork"], ["--launcher", "fork"]] {
        let done = machines.run(&[&options[..], &["-hosts", "far,away", "echo", "here"]].concat());
        assert_eq!((done.code, done.out.as_str()), (0, "here\nhere\n"), "{done:?}");
    }
    for (options, ranks) in [(["-N", "3"], 3), (["--npernode", "2"], 2), (["--map-by", "ppr:2:node"], 2)] {
        let done = machines.run(&[&options[..], &["echo", "here"]].concat());
        assert_eq!((done.code, done.out.lines().count()), (0, ranks), "{options:?}: {done:?}");
        let testbed = [("NMAD_TESTBED", "a=env WHERE=a;b=env WHERE=b")];
        let words = [&options[..], &["sh", "-c", "echo $PMI_RANK $WHERE"]].concat();
        let done = Launcher::start(&words, &testbed).done();
        let expected: Vec<String> =
            (0..2 * ranks).map(|rank| format!("{rank} {}", if rank < ranks { 'a' } else { 'b' })).collect();
        assert_eq!(sorted(&done.out), expected, "{options:?}: {done:?}");
    }
}

#[test]
fn folders_and_variables_travel() {
    let machines = Machines::new();
    let say = "echo $PWD $ALL $OWN $MINE $SSH_TTY.";
    let words = ["-hosts", "a", "-wdir", "/usr", "-genv", "ALL", "x", "-env", "OWN", "y", "sh", "-c", say];
    let around = [("MINE", "z"), ("SSH_TTY", "here")];
    // The script passes what it has; only what the launcher sends is of interest.
    let done = machines.start_with(&words, &around).done();
    assert!(done.out.starts_with("/usr x y z"), "{done:?}");
    let words = ["-hosts", "a", "-genvlist", "KEPT", "sh", "-c", "echo $KEPT.$MINE.${PATH:+path}"];
    let done = machines.start_with(&words, &[("KEPT", "k"), ("MINE", "z")]).done();
    assert_eq!(done.out, "k..path\n", "{done:?}");
}

#[test]
fn output_and_input_are_as_on_this_machine() {
    let machines = Machines::new();
    let done = machines.ranks(&["-hosts", "a,b,c", "-l"], &["lines", "500"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.err);
    let filling = "x".repeat(200);
    for rank in 0..3 {
        let tag = format!("[{rank}] ");
        let lines: Vec<&str> = done.out.lines().filter_map(|line| line.strip_prefix(&tag)).collect();
        let expected: Vec<String> = (0..500).map(|line| format!("line {line} {filling} end")).collect();
        assert_eq!(lines, expected, "the lines of rank {rank}, in order");
    }
    let input: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let mut launcher = machines.start(&["-hosts", "a:2,b", "--stdin", "all", "cksum"]);
    launcher.input(&input);
    let done = launcher.done();
    let sums: Vec<&str> = done.out.lines().collect();
    assert!(sums.len() == 3 && sums[0] == sums[1] && sums[1] == sums[2], "{done:?}");
    assert!(sums[0].ends_with(&format!(" {}", input.len())), "{done:?}");
    let mut launcher = machines.start(&["-hosts", "a,b", "-l", "cat"]);
    launcher.input("one\n");
    assert_eq!(launcher.done().out, "[0] one\n");
    let done = machines.run(&["-hosts", "a,b", "-l", "sh", "-c", "printf 'no end' >&2"]);
    assert_eq!(sorted(&done.err), ["[0] no end", "[1] no end"]);
}

#[test]
fn jobs_end_as_on_this_machine() {
    let machines = Machines::new();
    let on = ["-hosts", "a,b,c"];
    let done =
        machines.run(&[&on[..], &["sh", "-c", "test $PMI_RANK = 1 && exit 7; exec sleep 600"]].concat());
    assert_eq!(done.code, 7, "{done:?}");
    assert!(
        done.err.starts_with("nmad: rank 1 (pid ") && done.err.contains(" on b) exited with code 7"),
        "{done:?}"
    );
    let done = machines.ranks(&on, &["crash", "2"]);
    assert!(done.code == 139 && done.err.contains("on c) was killed by SIGSEGV"), "{done:?}");
    let done = machines.ranks(&on, &["abort", "6"]);
    assert!(done.code == 6 && done.err.contains("rank 1 asked to end the job with code 6"), "{done:?}");
    let done = machines.ranks(&on, &["early", "1"]);
    assert!(done.code == 1 && done.err.contains("in a fence that rank 1 will never join"), "{done:?}");
    let done = machines.ranks(&on, &["late", "1"]);
    assert_eq!((done.code, done.err.as_str()), (5, ""));
    let done = machines.ranks(&on, &["leave", "0"]);
    assert!(done.code == 1 && done.err.contains("without calling MPI_Finalize"), "{done:?}");
    let done = machines.run(&[&on[..], &["--timeout", "0.5", "sleep", "600"]].concat());
    assert!(done.code == 124 && done.err.contains("time limit of 0.5 s"), "{done:?}");
}

#[test]
fn signals_reach_all_machines() {
    let machines = Machines::new();
    let start = |trap: &str| {
        let script = format!("trap {trap}; sleep 600 & echo up; while :; do wait; done");
        let launcher = machines.start(&["-hosts", "a,b", "bash", "-c", &script]);
        assert_eq!((launcher.line(), launcher.line()), ("up\n".into(), "up\n".into()));
        launcher
    };
    let launcher = start("- INT");
    launcher.signal(Signal::INT);
    let done = launcher.done();
    assert_eq!((done.code, done.err.as_str()), (130, ""));
    let launcher = start("'echo usr1; exit 0' USR1");
    launcher.signal(Signal::USR1);
    assert_eq!(launcher.done().out, "usr1\nusr1\n");
    let launcher = start("'echo no' INT TERM");
    launcher.signal(Signal::INT);
    assert_eq!((launcher.line(), launcher.line()), ("no\n".into(), "no\n".into()));
    launcher.signal(Signal::INT);
    assert_eq!(launcher.done().code, 130);
}

#[test]
fn a_machine_that_is_lost_ends_the_job_with_its_name() {
    let machines = Machines::new();
    let script = "trap '' TERM HUP; sleep 600 & echo up; wait";
    let launcher = machines.start(&["-hosts", "a,b,c", "bash", "-c", script]);
    for _ in 0..3 {
        assert_eq!(launcher.line(), "up\n");
    }
    let start = Instant::now();
    kill_process(machines.agent_of("b"), Signal::KILL).expect("it lives");
    // Had a sleep survived anywhere, it would hold an output open.
    let done = launcher.done();
    assert!(done.code == 1 && done.err.contains("lost host b: "), "{done:?}");
    assert!(start.elapsed() < NOTICED, "it took {:?}", start.elapsed());
}

#[test]
fn ranks_on_other_machines_are_told_of_deaths() {
    let machines = Machines::new();
    let script = "test $PMI_RANK = 1 && kill -9 $$; echo saw $(od -An -td4 -N4 <&$NMAD_DEATHS_FD)";
    let done = machines.run(&["--ft", "-hosts", "a,b,c", "bash", "-c", script]);
    assert_eq!((done.code, done.out.as_str()), (0, "saw 1\nsaw 1\n"), "{done:?}");
    assert!(done.err.contains(" on b) was killed by SIGKILL; the others go on (--ft)"), "{done:?}");
}

#[test]
fn a_job_survives_the_loss_of_a_machine() {
    let machines = Machines::new();
    let script = "echo up; echo saw $(od -An -td4 -N8 <&$NMAD_DEATHS_FD)";
    let launcher = machines.start(&["--ft", "-hosts", "a:1,b:2,c:1", "-n", "4", "bash", "-c", script]);
    for _ in 0..4 {
        assert_eq!(launcher.line(), "up\n");
    }
    kill_process(machines.agent_of("b"), Signal::KILL).expect("it lives");
    let done = launcher.done();
    assert_eq!((done.code, done.out.as_str()), (0, "saw 1 2\nsaw 1 2\n"), "{done:?}");
    assert!(
        done.err.contains("lost host b: ") && done.err.contains("the ranks of other hosts go on"),
        "{done:?}"
    );
}

#[test]
fn a_killed_launcher_leaves_nobody_on_any_machine() {
    let machines = Machines::new();
    let script = "trap '' TERM HUP; sleep 600 & echo up $PPID; wait";
    let launcher = machines.start(&["-hosts", "a,b", "bash", "-c", script]);
    let agents: Vec<String> = (0..2).map(|_| launcher.line()).collect();
    launcher.signal(Signal::KILL);
    assert_eq!(launcher.all_gone(), [] as [&str; 0]);
    let limit = Instant::now() + NOTICED;
    for line in agents {
        let pid = line.trim().rsplit(' ').next().expect("a number");
        let status = format!("/proc/{pid}/status");
        let lives = || std::fs::read_to_string(&status).is_ok_and(|text| text.contains("launch-probe"));
        while lives() {
            assert!(Instant::now() < limit, "agent {pid} lives");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn machines_that_cannot_be_reached_are_named() {
    let gone = Machines::behind(
        "test $WHERE = b && { echo 'b: Permission denied' >&2; exit 255; }; exec sh -c \"$*\"",
    );
    let done = gone.run(&["-hosts", "a,b", "true"]);
    let words =
        "nmad: cannot start ranks on b: the command that starts ranks there exited with code 255: b: P";
    assert!(done.code == 1 && done.err.starts_with(words), "{done:?}");
    assert!(done.err.contains("without a password"), "{done:?}");

    let other = Machines::behind("{ read -r a b c; echo $a 9.9.9/1 $c; } | sh -c \"$*\"");
    let done = other.run(&["-hosts", "a", "true"]);
    assert!(done.code == 1 && done.err.contains("mpiexec that starts it has version 9.9.9"), "{done:?}");

    let silent = Machines::behind("exec sleep 600");
    let limit = [("NMAD_LAUNCH_TIMEOUT", "1")];
    let done = silent.start_with(&["-hosts", "a", "true"], &limit).done();
    assert!(
        done.code == 1 && done.err.contains("ranks on a: its agent did not connect within 1 s"),
        "{done:?}"
    );

    let machines = Machines::new();
    let done = machines.run(&["--prefix", "/no/such/folder", "-hosts", "a", "true"]);
    assert!(done.code == 1 && done.err.contains("has to be installed there too"), "{done:?}");
    let done = machines.run(&["-hosts", "a,b", "no-such-program"]);
    assert!(
        done.code == 127 && done.err.contains("cannot start rank") && done.err.contains("PATH"),
        "{done:?}"
    );
    let done = machines.run(&["-hosts", "a,b", "-wdir", "/no/such/folder", "true"]);
    assert!(done.code == 2 && done.err.contains("cannot run in the folder /no/such/folder"), "{done:?}");
}

#[test]
fn the_secret_is_on_no_command_line() {
    let machines = Machines::new();
    let script = "for file in /proc/[0-9]*/cmdline; do \
                    case \"$(tr '\\0' ' ' <$file 2>/dev/null)\" in *$NMAD_SECRET*) echo found $file;; esac; \
                  done; echo looked ${#NMAD_SECRET}";
    let done = machines.run(&["-hosts", "a,b", "sh", "-c", script]);
    assert_eq!((done.code, done.out.as_str()), (0, "looked 64\nlooked 64\n"), "{done:?}");
}

#[test]
fn bindings_are_told_for_each_machine() {
    let machines = Machines::new();
    let done = machines.run(&["-hosts", "a,b", "--bind-to", "core", "--report-bindings", "true"]);
    let lines = sorted(&done.err);
    assert!(done.code == 0 && lines.len() == 2, "{done:?}");
    assert!(lines[0].starts_with("nmad: rank 0 on a is bound to 1 core: processors "), "{done:?}");
    assert!(lines[1].starts_with("nmad: rank 1 on b is bound to 1 core: processors "), "{done:?}");
}

/// A rank that asks for more processes, with these lines about hosts, prints the answer, and goes on.
fn asking(count: u32, info: &str) -> String {
    let args = "arg1=rank\\narg2=ring\\nargcnt=2";
    let lines = format!("nprocs={count}\\nexecname={PROBE}\\ntotspawns=1\\nspawnssofar=1\\n{args}\\n{info}");
    format!(
        "if test $PMI_RANK = 0; then printf 'mcmd=spawn\\npreput_num=0\\n{lines}\\nendcmd\\n' >&$PMI_FD; \
         read -r -u $PMI_FD answer; echo \"$answer\"; fi; exec {PROBE} rank ring"
    )
}

#[test]
fn ranks_spawn_processes_on_the_machines_of_their_job() {
    let machines = Machines::new();
    let spawn = |count, info: &str| {
        let done = machines.run(&["-hosts", "a:2,b:1", "-n", "3", "bash", "-c", &asking(count, info)]);
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(done.out.matches(" of 3 nodes [0, 0, 1]").count(), 3, "{done:?}");
        done.out
    };
    let out = spawn(3, "");
    assert!(out.contains("cmd=spawn_result rc=0 errcodes=0,0,0"), "{out}");
    for (rank, rest) in
        [(0, "local 0/2 where \"a\""), (1, "local 0/1 where \"b\""), (2, "local 1/2 where \"a\"")]
    {
        let line = format!("rank {rank} of 3 nodes [0, 1, 0] {rest}");
        assert!(out.contains(&line), "{line}: {out}");
    }
    let out = spawn(2, "info_num=1\\ninfo_key_0=host\\ninfo_val_0=b");
    assert_eq!(out.matches(" of 2 nodes [1, 1]").count(), 2, "{out}");
    assert_eq!(out.matches("local 1/2 where \"b\"").count(), 1, "{out}");
    let out = spawn(2, "info_num=1\\ninfo_key_0=host\\ninfo_val_0=z");
    assert!(out.contains("rc=-1") && out.contains("none_of_these_hosts_belongs_to_the_job"), "{out}");
}

#[test]
fn a_spawn_that_a_machine_cannot_start_is_refused_and_the_job_goes_on() {
    let machines = Machines::new();
    let script = asking(2, "info_num=1\\ninfo_key_0=wdir\\ninfo_val_0=/no/such/folder");
    let done = machines.run(&["-hosts", "a,b", "-n", "2", "bash", "-c", &script]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("rc=-1") && done.out.contains("/no/such/folder"), "{done:?}");
    assert_eq!(done.out.matches(" of 2 nodes [0, 1]").count(), 2, "{done:?}");
}

#[test]
fn a_stopped_agent_does_not_delay_the_end_of_a_job() {
    let machines = Machines::new();
    let launcher = machines.start(&["-hosts", "a,b", "sh", "-c", "echo up; exec sleep 600"]);
    assert_eq!((launcher.line(), launcher.line()), ("up\n".into(), "up\n".into()));
    kill_process(machines.agent_of("b"), Signal::STOP).expect("it lives");
    launcher.signal(Signal::INT);
    let done = launcher.done();
    let text = "the agent of b did not report the end of its ranks within 10 s after SIGKILL: is it stopped?";
    assert!(done.code == 130 && done.err.contains(text), "{done:?}");
}
