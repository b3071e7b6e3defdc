//! Command lines: what help says, and what is said about lines that make no sense.

use crate::command::{nmad, run};
use std::os::unix::process::CommandExt;
use std::process::Command;

const SUBCOMMANDS: [&str; 9] =
    ["demo", "run", "testbed", "bench", "info", "install", "uninstall", "trace", "sim"];

#[test]
fn every_subcommand_explains_itself_with_examples() {
    for subcommand in SUBCOMMANDS {
        let ended = nmad(&[subcommand, "--help"]);
        assert_eq!(ended.code, Some(0), "{subcommand}: {}", ended.err);
        let example = format!("nmad {subcommand}");
        assert!(
            ended.out.contains("Examples:") && ended.out.contains(&example),
            "{subcommand}: {}",
            ended.out
        );
    }
    for pattern in ["latency", "bandwidth", "rate", "multiseg"] {
        let ended = nmad(&["bench", pattern, "--help"]);
        assert_eq!(ended.code, Some(0), "{pattern}");
        assert!(ended.out.contains("--strategy"), "{}", ended.out);
    }
}

#[test]
fn the_first_page_names_all_subcommands_but_hidden_ones() {
    let ended = nmad(&["--help"]);
    assert_eq!(ended.code, Some(0));
    for subcommand in SUBCOMMANDS {
        assert!(ended.out.contains(&format!("\n  {subcommand} ")), "{subcommand}: {}", ended.out);
    }
    assert!(!ended.out.contains("testbed-enter"), "{}", ended.out);
}

#[test]
fn the_version_is_told() {
    let ended = nmad(&["--version"]);
    assert_eq!((ended.code, ended.out.trim()), (Some(0), concat!("nmad ", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn lines_that_make_no_sense_end_with_2_and_a_hint() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage: nmad"),
        (&["fly"], "unrecognized subcommand 'fly'"),
        (&["run"], "PROG"),
        (&["run", "-n", "0", "true"], "1 to 65536"),
        (&["bench"], "latency"),
        (&["bench", "latency", "--size", "4P"], "64KiB"),
        (&["bench", "compare", "--quick", "--full"], "cannot be used with"),
        (&["bench", "compare", "--rounds", "0"], "1..=99"),
        (&["bench", "latency", "--strategy", "magic"], "known: fifo"),
        (&["bench", "rate", "--window", "0"], "1 to 10000"),
        (&["bench", "latency", "--rails", "fast"], "2.8gbit"),
        (&["bench", "latency", "--rails", "4"], "has no unit"),
        (&["explain", "4MiB", "--strategy", "magic", "--rails", "max"], "known: fifo"),
        (&["explain", "8", "--to", "0"], "rank 0 is where the message comes from"),
        (&["demo", "--rails", "max"], "needs a rate"),
        (&["demo", "--part", "rates"], "ranks"),
        (&["trace"], "FILE"),
        (&["install"], "--prefix"),
        (&["sim", "--seed", "x"], "1..200"),
        (&["sim", "--json", "--explain"], "cannot be used with"),
        (&["sim", "--bless"], "add --golden or --scale"),
        (&["sim", "--family", "bcast"], "--scale"),
        (&["sim", "--scale", "--family", "shout"], "known: barrier"),
        (&["sim", "--scale", "--fabric", "torus"], "known: fat-tree"),
        (&["sim", "--scale", "--size", "7"], "multiple of 8"),
        (&["testbed", "--json"], "--show"),
    ];
    for (words, hint) in cases {
        let ended = nmad(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.err);
        assert!(ended.err.contains(hint), "{words:?}: {}", ended.err);
    }
}

#[test]
fn a_trace_that_is_not_there_says_how_to_get_one() {
    let ended = nmad(&["trace", "/no/such/file"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("/no/such/file") && ended.err.contains("NMAD_TRACE"), "{}", ended.err);
}

#[test]
fn info_tells_strategies_and_where_settings_come_from() {
    let ended =
        run(Command::new(env!("CARGO_BIN_EXE_nmad")).args(["info", "--json"]).env("NMAD_CHUNK", "65536"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let info = &ended.json()[0];
    assert_eq!(info["strategies"][0]["name"], "fifo");
    let settings = info["settings"].as_array().expect("a list");
    let chunk = settings.iter().find(|setting| setting["key"] == "chunk").expect("it is a setting");
    assert_eq!((&chunk["value"], &chunk["origin"]), (&"65536".into(), &"environment".into()));
    let plain = nmad(&["info"]);
    assert!(plain.out.contains("ratio_split") && plain.out.contains("NMAD_CHUNK"), "{}", plain.out);
}

#[test]
fn under_the_names_of_launchers_it_is_a_launcher() {
    for name in ["mpiexec", "/usr/bin/mpirun"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nmad"));
        let ended = run(command.arg0(name).args(["-np", "2", "sh", "-c", "exit $((3 + PMI_SIZE))"]));
        assert_eq!(ended.code, Some(5), "{name}: {}", ended.err);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_mpiexec"));
    let ended = run(command.args(["-n", "3", "-genv", "WORD", "hello", "sh", "-c", "echo $WORD"]));
    assert_eq!((ended.code, ended.out.lines().count()), (Some(0), 3), "{}", ended.err);
    let ended = run(Command::new(env!("CARGO_BIN_EXE_mpiexec")).arg("-n"));
    assert_eq!(ended.code, Some(2), "{}", ended.err);
}
