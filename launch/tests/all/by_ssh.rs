//! Jobs on four machines by ssh: hosts of a testbed, with a network and an sshd of their own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nmad_testbed::{Rate, Spec, Testbed};

const PROBE: &str = env!("CARGO_BIN_EXE_launch-probe");
const SSHD: &str = "/usr/sbin/sshd";
const HOSTS: u32 = 4;

/// What the end of a host has to be noticed within, and some time for a machine that does other things.
const NOTICED: Duration = Duration::from_secs(5 + 3);

/// Why this cannot be tested here, if so. An sshd that is missing is installed where that is possible, once.
fn reason_to_skip() -> Option<String> {
    if let Err(refused) = nmad_testbed::available() {
        return Some(refused.to_string());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("sshd needs root to let a user in".into());
    }
    if !Path::new(SSHD).exists() {
        let script = "apt-get update -q && apt-get install -q -y openssh-server openssh-client";
        let limited = ["300", "sh", "-c", script];
        let installed =
            Command::new("timeout").args(limited).env("DEBIAN_FRONTEND", "noninteractive").output();
        if !installed.is_ok_and(|output| output.status.success()) || !Path::new(SSHD).exists() {
            return Some("there is no sshd, and apt-get cannot install openssh-server".into());
        }
    }
    None
}

/// Four machines that a key opens.
struct Machines {
    testbed: Testbed,
    folder: tempfile::TempDir,
}

impl Machines {
    /// None, if this cannot be tested here.
    fn start() -> Option<Machines> {
        Machines::of(HOSTS)
    }

    /// This number of machines.
    fn of(hosts: u32) -> Option<Machines> {
        static REASON: OnceLock<Option<String>> = OnceLock::new();
        if let Some(reason) = REASON.get_or_init(reason_to_skip) {
            eprintln!("skipped: {reason}");
            return None;
        }
        let rails = vec![Rate::Unlimited];
        let testbed = Testbed::build(&Spec::new(hosts, rails)).expect("a testbed");
        let machines = Machines { testbed, folder: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir_all("/run/sshd").expect("sshd wants it");
        for key in ["host", "user", "stranger"] {
            let how = ["-q", "-t", "ed25519", "-N", "", "-f"];
            let made = Command::new("ssh-keygen").args(how).arg(machines.path(key)).status();
            assert!(made.is_ok_and(|status| status.success()), "ssh-keygen");
        }
        machines.configure();
        for host in 0..hosts {
            let mut sshd = Command::new(SSHD);
            sshd.args(["-D", "-e", "-f", &machines.path("sshd_config")]).stderr(Stdio::piped());
            // It ends with the testbed.
            let mut child = machines.testbed.run(host, sshd).expect("sshd");
            let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
            let listens = lines.any(|line| line.is_ok_and(|line| line.contains("listening")));
            assert!(listens, "sshd on host{host} does not listen");
            std::thread::spawn(move || {
                lines.for_each(drop);
                child.wait()
            });
        }
        Some(machines)
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("text").to_owned()
    }

    fn configure(&self) {
        let sshd = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PermitRootLogin yes\nPasswordAuthentication no\n",
            self.path("host"),
            self.path("user.pub")
        );
        std::fs::write(self.path("sshd_config"), sshd).expect("it is written");
        for key in ["user", "stranger"] {
            let ssh = format!(
                "IdentityFile {}\nIdentitiesOnly yes\nStrictHostKeyChecking no\n\
                 UserKnownHostsFile /dev/null\n",
                self.path(key)
            );
            std::fs::write(self.path(&format!("{key}_config")), ssh).expect("it is written");
        }
    }

    /// The launcher on the first machine, for the user with this key.
    fn launcher(&self, key: &str, words: &[&str]) -> Command {
        // As on a machine that is no testbed.
        let mut command = Command::new("env");
        let config = format!("-F {}", self.path(&format!("{key}_config")));
        command.args(["-u", "NMAD_TESTBED", PROBE, "run"]).args(words);
        command.env("HYDRA_LAUNCH_EXTRA_ARGS", config);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, key: &str, words: &[&str]) -> (i32, String, String) {
        let child = self.testbed.run(0, self.launcher(key, words)).expect("it starts");
        told(child.wait_with_output().expect("its output"))
    }
}

fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Ranks of all machines meet; the hostfile has the form in which the MPI operator of Kubernetes writes it.
#[test]
fn ranks_of_four_machines_meet() {
    let Some(machines) = Machines::start() else { return };
    let hosts = ["-hosts", "host0:2,host1:2,host2:2,host3:2", "--timeout", "60"];
    let (code, out, err) = machines.run("user", &[&hosts[..], &[PROBE, "rank", "ring"]].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for rank in 0..8 {
        let nodes = "nodes [0, 0, 1, 1, 2, 2, 3, 3]";
        assert!(out.contains(&format!("rank {rank} of 8 {nodes} local {}/2", rank % 2)), "{out}");
    }
    let file = machines.path("hostfile");
    std::fs::write(&file, "host1:1\nhost2:1\nhost3:1\n").expect("it is written");
    let mut launcher = machines.launcher("user", &["-l", "hostname"]);
    launcher.env("HYDRA_HOST_FILE", &file);
    let child = machines.testbed.run(0, launcher).expect("it starts");
    let (code, out, err) = told(child.wait_with_output().expect("its output"));
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!((code, lines), (0, vec!["[0] host1", "[1] host2", "[2] host3"]), "{err}");
    let script = ["-hosts", "host1,host2", "sh", "-c", "test $PMI_RANK = 1 && exit 7; exec sleep 600"];
    let (code, _, err) = machines.run("user", &script);
    assert!(code == 7 && err.contains(" on host2) exited with code 7"), "{code}: {err}");
}

#[test]
fn what_cannot_work_ends_at_once_and_says_why() {
    let Some(machines) = Machines::start() else { return };
    let start = Instant::now();
    let (code, _, err) = machines.run("stranger", &["-hosts", "host1", "true"]);
    assert!(code == 1 && err.contains("cannot start ranks on host1"), "{err}");
    assert!(err.contains("Permission denied") && err.contains("without a password"), "{err}");
    let (code, _, err) = machines.run("user", &["-hosts", "host1,host99", "true"]);
    assert!(code == 1 && err.contains("cannot start ranks on host99"), "{err}");
    assert!(err.contains("is the name of the host right?"), "{err}");
    assert!(start.elapsed() < Duration::from_secs(30), "it took {:?}", start.elapsed());
}

#[test]
fn a_machine_whose_network_dies_ends_the_job_and_its_ranks_end_too() {
    let Some(machines) = Machines::start() else { return };
    let words = ["-hosts", "host1,host2", "sh", "-c", "echo up $$; exec sleep 600"];
    let mut child = machines.testbed.run(0, machines.launcher("user", &words)).expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("piped"));
    let mut ranks = Vec::new();
    for _ in 0..2 {
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        ranks.push(line.trim().trim_start_matches("up ").to_owned());
    }
    let start = Instant::now();
    machines.testbed.set_link(2, 0, false).expect("it has a rail");
    let (code, _, err) = told(child.wait_with_output().expect("its output"));
    assert!(code == 1 && err.contains("lost host host2: "), "{code}: {err}");
    assert!(start.elapsed() < NOTICED, "it took {:?}", start.elapsed());
    // The one that cannot be reached notices that by itself.
    let limit = Instant::now() + Duration::from_secs(30);
    let lives = |pid: &String| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("sleep"))
    };
    while ranks.iter().any(lives) {
        assert!(Instant::now() < limit, "a rank lives on: {ranks:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Values come to six machines along the tree of agents. A machine that a firewall keeps from its parent gets
/// them from the launcher.
#[test]
fn values_come_along_the_tree_and_around_a_firewall() {
    let Some(machines) = Machines::of(7) else { return };
    let words = ["-hosts", "host1,host2,host3,host4,host5,host6", "--timeout", "60", PROBE, "rank", "ring"];
    let ring = || {
        let (code, out, err) = machines.run("user", &words);
        assert_eq!((code, err.as_str(), out.lines().count()), (0, "", 6), "{out}");
    };
    ring();
    let run = |host, program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = machines.testbed.run(host, command).expect("it starts");
        told(child.wait_with_output().expect("its output"))
    };
    // The first machine is the parent of the fifth one. Packets to its addresses are dropped there.
    let (_, addresses, _) = run(1, "hostname", &["-I"]);
    for address in addresses.split_whitespace() {
        let family = if address.contains(':') { "-6" } else { "-4" };
        let (code, _, err) = run(5, "ip", &[family, "route", "add", "blackhole", address]);
        assert_eq!(code, 0, "ip route: {err}");
    }
    let start = Instant::now();
    ring();
    assert!(start.elapsed() < Duration::from_secs(20), "it took {:?}", start.elapsed());
}
