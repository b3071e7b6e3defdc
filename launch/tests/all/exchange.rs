//! Ranks under our own launcher learn who they are and what the others put.

use crate::probe::{self, Done, Launcher, PROBE, ranks};

fn ring(count: u32) {
    let done = ranks(&["-n", &count.to_string()], &["ring"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let mut lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines.len(), count as usize);
    lines.sort_by_key(|line| line.split(' ').nth(1).map(|rank| rank.parse::<u32>().unwrap()));
    let secret = lines[0].split("secret").nth(1).unwrap();
    for (rank, line) in lines.iter().enumerate() {
        let nodes = vec![0; count as usize];
        let start = format!("rank {rank} of {count} nodes {nodes:?} local {rank}/{count} ");
        assert!(line.starts_with(&start), "{line}");
        assert!(line.ends_with(secret), "all ranks share one secret: {line}");
    }
}

#[test]
fn one_rank() {
    ring(1);
}

#[test]
fn two_ranks() {
    ring(2);
}

#[test]
fn five_ranks() {
    ring(5);
}

#[test]
fn seventeen_ranks() {
    ring(17);
}

#[test]
fn sixty_four_ranks() {
    ring(64);
}

#[test]
fn programs_share_a_job() {
    let one = ["-n", "1", PROBE, "rank", "program", ":", "-np", "2", PROBE, "rank", "program"];
    let done = probe::launch(&one);
    assert_eq!(done.code, 0, "{done:?}");
    for (rank, program) in [0, 1, 1].into_iter().enumerate() {
        assert!(done.out.contains(&format!("rank {rank} of 3: Some({program})\n")), "{done:?}");
    }
}

#[test]
fn programs_have_variables_and_folders_of_their_own() {
    let say = "echo $PMI_RANK/$PMI_SIZE:$ALL:$OWN:$PWD";
    let first = ["-genv", "ALL", "a", "-env", "OWN", "b", "-wdir", "/usr", "sh", "-c", say, "x"];
    let second = [":", "-n", "2", "-wdir", "/", "sh", "-c", say];
    let done = probe::launch(&[&first[..], &second].concat());
    let mut lines: Vec<&str> = done.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0/3:a:b:/usr", "1/3:a::/", "2/3:a::/"], "{done:?}");
}

#[test]
fn wrong_programs_are_told() {
    for (line, words) in [
        ("true : -n 1", "program 1:"),
        ("true : -genv A B true", "program 1: -genv is for the whole job"),
        ("true : --timeout 3 true", "--timeout is for the whole job"),
        ("true : -n 1 -wdir /no/such/folder true", "/no/such/folder"),
    ] {
        let done = probe::launch(&line.split(' ').collect::<Vec<_>>());
        assert!(done.code == 2 && done.err.contains(words), "{line}: {done:?}");
    }
}

#[test]
fn hosts_take_turns() {
    let hosts = [("NMAD_TESTBED", "a=env WHERE=a;b=env WHERE=b")];
    let done = Launcher::start(&["-n", "5", PROBE, "rank", "ring"], &hosts).done();
    assert_eq!(done.code, 0, "{done:?}");
    for (rank, local, locals, host) in [(0, 0, 3, "a"), (1, 0, 2, "b"), (3, 1, 2, "b"), (4, 2, 3, "a")] {
        let line = format!("rank {rank} of 5 nodes [0, 1, 0, 1, 0] local {local}/{locals} where \"{host}\"");
        assert!(done.out.contains(&line), "{line} in {}", done.out);
    }
}

#[test]
fn a_host_file_and_none_override_the_testbed() {
    let hosts = [("NMAD_TESTBED", "a=env WHERE=a")];
    let done = Launcher::start(&["--hosts-from", "none", PROBE, "rank", "ring"], &hosts).done();
    assert!(done.out.contains("where \"\""), "{done:?}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "x=env WHERE=x\n").unwrap();
    let path = file.path().to_str().unwrap();
    let done = Launcher::start(&["--hosts-from", path, PROBE, "rank", "ring"], &hosts).done();
    assert!(done.out.contains("where \"x\""), "{done:?}");
}

#[test]
fn nonsense_does_not_kill_the_server() {
    // The rank talks nonsense, reads the answers, and then joins the ring as if nothing had happened.
    let script = format!(
        "for line in hello 'cmd=dance x' 'cmd=put key=a' ''; do \
           echo \"$line\" >&$PMI_FD; read -r -u $PMI_FD answer; echo \"answer $answer\"; \
         done; exec {PROBE} rank ring"
    );
    let done = probe::launch(&["-n", "3", "bash", "-c", &script]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.out.matches("rc=-1").count(), 12, "{done:?}");
    assert_eq!(done.out.matches("rank ").count(), 3, "{done:?}");
    assert!(done.err.contains("sent \"hello\", which is not PMI-1"), "{done:?}");
    assert!(done.err.contains("further such lines are not reported"), "{done:?}");
}

/// A rank that asks for processes in these lines, prints the answer and goes on.
fn asks(lines: &str) -> Done {
    let script = format!(
        "printf 'mcmd=spawn\\n{lines}\\nendcmd\\n' >&$PMI_FD; read -r -u $PMI_FD answer; \
         echo \"$answer\"; exec {PROBE} rank ring"
    );
    probe::launch(&["bash", "-c", &script])
}

#[test]
fn ranks_have_processes_started_as_a_job_of_their_own() {
    let done = asks(&format!(
        "nprocs=2\\nexecname={PROBE}\\ntotspawns=1\\nspawnssofar=1\\n\
         arg1=rank\\narg2=ring\\nargcnt=2\\npreput_num=0"
    ));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("cmd=spawn_result rc=0 errcodes=0,0"), "{done:?}");
    for line in ["rank 0 of 1", "rank 0 of 2", "rank 1 of 2"] {
        assert!(done.out.contains(line), "{line}: {done:?}");
    }
}

#[test]
fn spawning_is_refused_clearly() {
    let done = asks("nprocs=1");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("cmd=spawn_result rc=-1"), "{done:?}");
    assert!(done.err.contains("asked for processes in a wrong way: execname= is missing"), "{done:?}");
    let done = asks("nprocs=1\\nexecname=/no/such/program\\ntotspawns=1\\nspawnssofar=1");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.contains("rc=-1") && done.out.contains("/no/such/program"), "{done:?}");
    assert!(done.out.contains("rank 0 of 1"), "it goes on: {done:?}");
}

#[test]
fn variables_of_a_launcher_around_us_do_not_reach_the_ranks() {
    let around = [("PMIX_RANK", "7"), ("PMI_PORT", "x:1"), ("MINE", "kept")];
    let args = ["--env", "ADDED=yes", "sh", "-c", "echo $PMIX_RANK:$PMI_PORT:$PMI_RANK:$MINE:$ADDED"];
    let done = Launcher::start(&args, &around).done();
    assert_eq!(done.out, "::0:kept:yes\n", "{done:?}");
}
