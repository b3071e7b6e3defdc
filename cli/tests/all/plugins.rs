//! Strategies in shared libraries: an invalid file is reported before a job starts, a wrong answer is
//! reported once while the job goes on, and a valid strategy decides which bytes each rail carries.

use crate::command::{Ended, run};
use crate::install;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/plugins");
/// Bytes of the large messages of `streams.c`.
const BYTES: u64 = 8 * (4 << 20);

/// A folder with the plug-ins `CASE.so` and the program `streams`.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().expect("a folder");
        for case in ["RIGHT", "NULL_TABLE", "OTHER_VERSION", "NO_STRATEGY", "LACKS_SPLIT"] {
            compile(&folder.path().join(format!("{case}.so")), &[&format!("-DCASE={case}")]);
        }
        let mut mpicc = Command::new(install::prefix().join("bin/mpicc"));
        let source = format!("{SOURCE}/streams.c");
        let ended = run(mpicc.args([&*source, "-o"]).arg(folder.path().join("streams")));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        fs::write(folder.path().join("text.so"), "no library\n".repeat(100)).expect("a file");
        fs::copy(folder.path().join("RIGHT.so"), folder.path().join("open.so")).expect("a copy");
        fs::set_permissions(folder.path().join("open.so"), Permissions::from_mode(0o666)).expect("its mode");
        folder
    };
    FOLDER.get_or_init(make).path()
}

/// Compiles a plug-in as the documentation says: without any library.
fn compile(to: &Path, options: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]).args(options);
    cc.arg("-I").arg(install::prefix().join("include")).arg(format!("{SOURCE}/strategies.c"));
    let ended = run(cc.arg("-o").arg(to));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

/// Runs an installed command in the folder of the plug-ins with this strategy.
fn with(strategy: &str, program: &str, words: &[&str]) -> Ended {
    let mut command = Command::new(install::prefix().join("bin").join(program));
    command.args(words).current_dir(folder()).env("NMAD_STRATEGY", strategy);
    run(command.env("NMAD_SAMPLE", "off"))
}

#[test]
fn a_file_that_is_no_right_plug_in_is_named_with_the_remedy() {
    // A library that is none of ours; the folder belongs to the user, so a copy is made.
    let other = folder().join("other.so");
    fs::copy(install::prefix().join("lib/libnmad.so"), &other).expect("a library");
    fs::set_permissions(&other, Permissions::from_mode(0o644)).expect("its mode");
    for (strategy, texts) in [
        (
            "./none.so:eighth",
            &["there is no plug-in /", "none.so; a relative path starts in the working"][..],
        ),
        ("text.so:eighth", &["text.so cannot be loaded (", "invalid ELF header", "cc -shared -fPIC"]),
        ("./:eighth", &["is no file"]),
        ("open.so:eighth", &["open.so may be changed by other users", "chmod go-w"]),
        ("other.so:eighth", &["other.so is no plug-in: it has no function nmad_strategies"]),
        ("NULL_TABLE.so:eighth", &["returns NULL from nmad_strategies()"]),
        (
            "OTHER_VERSION.so:eighth",
            &["compiled for version 2 of the interface, and this library has 1: compile it"],
        ),
        ("NO_STRATEGY.so", &["offers no strategy: count is 0"]),
        ("LACKS_SPLIT.so:fails", &["offers an invalid strategy: strategy 'eighth' lacks a function"]),
        ("RIGHT.so:half", &["has no strategy 'half' (it has: eighth, splits-too-much, fails"]),
        ("./RIGHT.so", &["has several strategies (eighth, ", "choose one as ./RIGHT.so:NAME"]),
    ] {
        // The launcher says it once, before a rank starts.
        for (program, words) in [("nmad", &["info"][..]), ("mpiexec", &["-n", "2", "./streams"])] {
            let ended = with(strategy, program, words);
            let told: Vec<&str> = ended.err.lines().filter(|line| line.contains("NMAD_STRATEGY")).collect();
            assert!(ended.code == Some(2) && told.len() == 1, "{strategy}: {:?} {}", ended.code, ended.err);
            assert!(texts.iter().all(|text| told[0].contains(text)), "{strategy}: {}", told[0]);
        }
        let ended = with("auto", "nmad", &["bench", "latency", "--here", "--strategy", strategy]);
        assert!(ended.code == Some(2) && ended.err.contains(texts[0]), "{}", ended.err);
    }
}

#[test]
fn info_lists_the_strategies_of_a_plug_in_with_file_and_version() {
    let ended = with("RIGHT.so:eighth", "nmad", &["info"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let line =
        |name: &str| ended.out.lines().find(|line| line.trim_start().starts_with(name)).expect("a line");
    let expected = format!("of the plug-in {}, version 2.5 (in force)", folder().join("RIGHT.so").display());
    assert!(line("RIGHT.so:eighth").ends_with(&expected), "{}", ended.out);
    assert!(line("RIGHT.so:fails").ends_with("version 2.5"), "{}", ended.out);
    assert!(!line("auto").contains("in force"));
    let objects = with("RIGHT.so:eighth", "nmad", &["info", "--json"]).json();
    let strategies = objects[0]["strategies"].as_array().expect("a list");
    let own = strategies.iter().find(|one| one["in_force"] == true).expect("one is in force");
    assert_eq!((&own["name"], &own["plug_in"]["version"]), (&"RIGHT.so:eighth".into(), &"2.5".into()));
}

/// Bytes of messages that each rail of rank 0 carried, from its line of statistics; in MiB.
fn on_rails(err: &str) -> Option<[f64; 2]> {
    let of = |rail: &str| {
        let line = err.lines().find(|line| line.contains("rank 0: ") && line.contains(rail))?;
        let text = line.split_once("chunks of large messages (")?.1.split_once(')')?.0;
        let (figure, unit) = text.split_once(' ')?;
        let unit =
            [("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0)].into_iter().find(|one| one.0 == unit)?.1;
        Some(figure.parse::<f64>().ok()? * unit / 1_048_576.0)
    };
    Some([of("/r0: ")?, of("/r1: ")?])
}

/// Runs `streams` on two hosts with rails of 4 and 1 Gbit/s; none: there is no testbed here.
fn on_two_hosts(strategy: &str, words: &[&str]) -> Option<Ended> {
    if let Err(refused) = nmad_testbed::available() {
        eprintln!("skipped: {refused}");
        return None;
    }
    let mpiexec = install::prefix().join("bin/mpiexec");
    let mpiexec = mpiexec.to_str().expect("text");
    let testbed = ["testbed", "--hosts", "2", "--rails", "4gbit,1gbit", "--", mpiexec, "--timeout", "60"];
    let job = ["--env", "NMAD_STATS=1", "-n", "2", "./streams"];
    Some(with(strategy, "nmad", &[&testbed[..], &job, words].concat()))
}

#[test]
fn a_plug_in_decides_what_each_rail_carries_for_an_mpi_program() {
    let all = BYTES as f64 / 1_048_576.0;
    let rust = rust_plug_in();
    let rust = format!("{}:halves", rust.display());
    for (strategy, words, share) in [
        ("RIGHT.so:eighth", &[][..], 1.0 / 8.0),
        // Chosen while the program runs: loaded then.
        ("auto", &["./RIGHT.so:eighth"], 1.0 / 8.0),
        (&rust, &[], 1.0 / 2.0),
    ] {
        let Some(ended) = on_two_hosts(strategy, words) else { return };
        assert_eq!((ended.code, &*ended.out), (Some(0), "all right\n"), "{strategy}: {}", ended.err);
        let [first, second] = on_rails(&ended.err).expect("the statistics of two rails");
        let is_near = |mib: f64, share: f64| (mib / all - share).abs() < 0.02;
        assert!(is_near(first, 1.0 - share) && is_near(second, share), "{strategy} {words:?}: {}", ended.err);
    }
}

#[test]
fn a_plug_in_that_answers_wrongly_is_named_once_and_loses_nothing() {
    // The first question may be a hypothetical one, about the length from which on messages are large.
    for (strategy, what) in [
        ("splits-too-much", "shared "),
        ("fails", "gave a wrong answer in split: it failed with -10"),
        ("fills-too-much", "gave a wrong answer in fill: it chose "),
    ] {
        let Some(ended) = on_two_hosts(&format!("./RIGHT.so:{strategy}"), &[]) else { return };
        assert_eq!((ended.code, &*ended.out), (Some(0), "all right\n"), "{strategy}: {}", ended.err);
        let told = ended.err.lines().filter(|line| line.contains("strategy"));
        let of_sender: Vec<&str> = told.filter(|line| line.contains("decides for rank 1")).collect();
        let begin = format!("strategy './RIGHT.so:{strategy}' {what}");
        let is_right = |line: &str| line.contains(&begin) && line.ends_with("for rank 1 from now on");
        assert!(of_sender.len() == 1 && is_right(of_sender[0]), "{strategy}: {}", ended.err);
        assert!(!ended.err.contains("panicked at"), "{}", ended.err);
    }
}

#[test]
fn a_plug_in_that_loops_ends_the_process_with_its_name() {
    let ended = with("./RIGHT.so:loops", "mpiexec", &["--timeout", "60", "-n", "2", "./streams"]);
    assert!(ended.code.is_some_and(|code| code != 0), "{}", ended.err);
    let expected = "strategy './RIGHT.so:loops', which decides for rank";
    assert!(ended.err.contains(expected) && ended.err.contains("it loops"), "{}", ended.err);
}

/// Builds the example in Rust with the profile of this test.
fn rust_plug_in() -> PathBuf {
    // target/PROFILE/deps/this
    let own = std::env::current_exe().expect("this test has a path");
    let profile = own.ancestors().nth(2).expect("a folder of the profile");
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "-p", "nmad-plugin", "--example", "halves", "--profile", name]);
    cargo
        .arg("--target-dir")
        .arg(profile.parent().expect("a folder"))
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let ended = run(&mut cargo);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    // A copy that no other user can write to, whatever the permissions of the folder of builds are.
    let copy = folder().join("halves.so");
    fs::copy(profile.join("examples/libhalves.so"), &copy).expect("the plug-in");
    fs::set_permissions(&copy, Permissions::from_mode(0o755)).expect("its mode");
    copy
}
