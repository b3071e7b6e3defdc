//! Agents pass the end of a fence on along a tree, and the head serves hosts whose parent is lost.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::machines::Machines;

/// Returns how many TCP connections a process has.
fn connections(process: Pid) -> usize {
    let pid = process.as_raw_pid();
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok()?.into_os_string().into_string().ok());
    let inodes: Vec<String> =
        links.filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect();
    let tables = ["tcp", "tcp6"].map(|table| std::fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let tables = tables.into_iter().flatten().collect::<String>();
    let is_ours = |row: &&str| {
        let words: Vec<&str> = row.split_ascii_whitespace().collect();
        words.get(3) == Some(&"01") && words.get(9).is_some_and(|inode| inodes.iter().any(|own| own == inode))
    };
    tables.lines().filter(is_ours).count()
}

/// Enters two fences, the first when the file `1` exists. The last rank enters the second one when the file
/// `2` exists. Another request in the fence shows that the agent has handled the rank's line.
const SCRIPT: &str = "\
    ask() { echo cmd=$1 >&$PMI_FD; }
    answer() { read -r -u $PMI_FD line; }
    wait_for() { until test -e $FOLDER/$1; do sleep 0.01; done; }
    ask 'init pmi_version=1 pmi_subversion=1 library=LIBRARY'; answer
    wait_for 1
    name=$(ask get_my_kvsname; answer; echo ${line##*=})
    ask \"put kvsname=$name key=k$PMI_RANK value=v$PMI_RANK\"; answer
    ask barrier_in; answer; echo one
    test $PMI_RANK = 8 && wait_for 2
    ask barrier_in; ask get_appnum; answer; echo in $PMI_RANK; answer; echo out $PMI_RANK
    ask \"get kvsname=$name key=k3\"; answer; echo ${line##*=}
    ask finalize; answer";

#[test]
fn a_host_whose_parent_is_lost_in_a_fence_is_served_by_the_head() {
    let machines = Machines::new();
    let hosts: Vec<String> = (0..9).map(|host| format!("h{host}")).collect();
    let script = SCRIPT.replace("LIBRARY", env!("CARGO_PKG_VERSION"));
    let folder = machines.folder.path().to_str().expect("text");
    let words = ["--ft", "-hosts", &hosts.join(","), "bash", "-c", &script];
    let launcher = machines.start_with(&words, &[("FOLDER", folder)]);
    let create = |name: &str| std::fs::write(machines.folder.path().join(name), "").expect("a file");
    let lines = |count: usize| {
        let mut lines: Vec<String> = (0..count).map(|_| launcher.line().trim().to_owned()).collect();
        lines.sort_unstable();
        lines
    };
    // The head and four others; the head and one other.
    let limit = Instant::now() + Duration::from_secs(20);
    let agent = |host: &str| {
        let is_there = || machines.folder.path().join(host).exists();
        while !is_there() {
            assert!(Instant::now() < limit, "{host} does not start");
            std::thread::yield_now();
        }
        machines.agent_of(host)
    };
    while (connections(agent("h0")), connections(agent("h1"))) != (5, 2) {
        assert!(Instant::now() < limit, "agents do not connect to each other");
        std::thread::sleep(Duration::from_millis(10));
    }
    create("1");
    assert_eq!(
        lines(9 + 8),
        [&["in 0", "in 1", "in 2", "in 3", "in 4", "in 5", "in 6", "in 7"][..], &["one"; 9]].concat()
    );
    kill_process(agent("h0"), Signal::STOP).expect("it lives");
    create("2");
    // Hosts 4 to 7 get messages for all from host 0, and host 8 from host 1.
    assert_eq!(lines(1 + 2 * 4), ["in 8", "out 1", "out 2", "out 3", "out 8", "v3", "v3", "v3", "v3"]);
    kill_process(agent("h0"), Signal::KILL).expect("it lives");
    assert_eq!(lines(2 * 4), ["out 4", "out 5", "out 6", "out 7", "v3", "v3", "v3", "v3"]);
    let done = launcher.done();
    assert!(done.code == 0 && done.err.contains("lost host h0: "), "{done:?}");
}
