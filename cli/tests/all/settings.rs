//! Wrong settings: named with the remedy, once, with exit code 2. docs/settings.md has the same list.

use crate::command::{Ended, run};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_nmad");

/// Runs `nmad` with these variables and words.
fn nmad(set: &[(&str, &str)], words: &[&str]) -> Ended {
    run(Command::new(PROGRAM).args(words).env("HOME", "/dev/null").envs(set.iter().copied()))
}

/// A variable, its value, and words that the message must have.
const WRONG: &[(&str, &str, &str)] = &[
    ("NMAD_STRATEGY", "fifoo", "strategy (NMAD_STRATEGY): there is no strategy 'fifoo' (known: fifo,"),
    ("NMAD_RAILS", "eth99", "rails (NMAD_RAILS): interface 'eth99' is not up or has no address (there are:"),
    ("NMAD_RAILS", "lo=10", "NMAD_RAILS: '10' has no unit: write 2.8gbit"),
    (
        "NMAD_DRIVER",
        "rdma",
        "NMAD_DRIVER: 'rdma' is no driver for interfaces (there are: tcp, udp, packet, verbs, ofi:tcp, ",
    ),
    ("NMAD_CHUNK", "4Mbit", "NMAD_CHUNK: '4Mbit' has an unknown unit: write 4096, 64KiB"),
    ("NMAD_CREDIT", "1k", "NMAD_CREDIT: '1k' is too little: at least 262144 B"),
    ("NMAD_PROFILE", "/no/such.profile", "profile (NMAD_PROFILE): /no/such.profile: No such file"),
    ("NMAD_TRACE", "/no/such/trace", "trace (NMAD_TRACE): cannot write /no/such/trace: there is no folder"),
    ("NMAD_CONFIG", "/no/such.toml", "NMAD_CONFIG: cannot read /no/such.toml"),
    ("NMAD_RETURN_WITHIN", "soon", "NMAD_RETURN_WITHIN: 'soon' is no number of seconds"),
    ("NMAD_CROSS_MEMORY", "perhaps", "NMAD_CROSS_MEMORY: 'perhaps' is neither on nor off"),
    ("NMAD_STATS", "sums", "NMAD_STATS: 'sums' is neither on, off nor a folder (write ./sums for that one)"),
    ("NMAD_STATS", "/no/such/", "stats (NMAD_STATS): cannot write files into /no/such/: No such file"),
];

#[test]
fn info_says_what_a_job_would_refuse() {
    for (name, value, words) in WRONG {
        for form in [&["info"][..], &["info", "--json"]] {
            let ended = nmad(&[(name, value)], form);
            assert_eq!(ended.code, Some(2), "{name}={value}: {}", ended.err);
            assert_eq!(ended.err.matches(words).count(), 1, "{name}={value}: {}", ended.err);
        }
    }
    // In two parts, so that nobody takes it for a variable of ours.
    let misspelt = concat!("NMAD_", "STRATGY");
    let ended = nmad(&[(misspelt, "fifo")], &["info"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains(&format!("{misspelt} has no effect")) && ended.err.contains("NMAD_STRATEGY meant")
    );
    let ended = nmad(&[("NMAD_STRATEGY", "fifo"), ("NMAD_RAILS", "lo=10G,shm")], &["info"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{}", ended.err);
}

#[test]
fn a_job_tells_a_wrong_setting_once_whatever_its_ranks_run() {
    for (name, value, words) in WRONG {
        let ended = nmad(&[(name, value)], &["run", "-n", "3", "echo", "started"]);
        assert_eq!(ended.code, Some(2), "{name}={value}: {}", ended.err);
        assert_eq!(ended.err.matches(words).count(), 1, "{name}={value}: {}", ended.err);
        assert_eq!((ended.out.as_str(), ended.err.lines().count()), ("", 1), "{}", ended.err);
    }
    let ended = nmad(&[], &["run", "--rails", "eth99", "echo", "started"]);
    assert!(ended.code == Some(2) && ended.err.contains("interface 'eth99' is not up"), "{}", ended.err);
    let given: [&[&str]; 3] =
        [&["--driver", "rdma"], &["--genv", "NMAD_DRIVER=rdma"], &["--env", "NMAD_DRIVER=rdma"]];
    for options in given {
        let ended = nmad(&[], &[&["run", "-n", "2"], options, &["echo", "started"]].concat());
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
        assert!(ended.err.contains("'rdma' is no driver"), "{}", ended.err);
    }
    let right =
        nmad(&[("NMAD_STRATEGY", "fifoo")], &["run", "--genv", "NMAD_STRATEGY=fifo", "echo", "started"]);
    assert_eq!((right.code, right.out.as_str()), (Some(0), "started\n"), "{}", right.err);
}

#[test]
fn commands_that_start_ranks_tell_it_once_as_well() {
    for words in [&["bench", "latency", "--here"][..], &["sample", "--here"], &["explain", "8"]] {
        let ended = nmad(&[("NMAD_STRATEGY", "fifoo")], words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.err);
        assert_eq!(ended.err.matches("there is no strategy").count(), 1, "{words:?}: {}", ended.err);
    }
}

#[test]
fn a_configuration_file_without_quotes_is_shown_with_them() {
    let file = tempfile::NamedTempFile::new().expect("a file can be made");
    std::fs::write(file.path(), "chunk = 65536\nstrategy = fifo\n").expect("it can be written");
    let ended = nmad(&[("NMAD_CONFIG", file.path().to_str().expect("UTF-8"))], &["info"]);
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(ended.err.contains("line 2: a text needs quotes: strategy = \"fifo\""), "{}", ended.err);
}

#[test]
fn the_page_of_settings_has_the_table_that_the_command_prints() {
    const BEGIN: &str = "<!-- begin: nmad info --settings markdown -->\n";
    let page = include_str!("../../../docs/settings.md");
    let table =
        page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once("\n<!-- end -->")).expect("a table");
    let ended = nmad(&[], &["info", "--settings", "markdown"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(table.0 == ended.out, "docs/settings.md: put in what `nmad info --settings markdown` prints");
    let ended = nmad(&[], &["info", "--settings"]);
    assert!(ended.out.contains("NMAD_CHUNK [a size, at least 4096; default: 1048576]"), "{}", ended.out);
}
