//! `nmad model`: patterns from files, changes, and what is said of wrong ones.

use crate::command::{Ended, Schema, nmad, run};
use std::fs;
use std::process::Command;

const PATTERN: &str = "ranks 3
rank *: recv -1; send +1 512KiB; compute 2ms; wait; compute 2ms
rank 2: recv -1; send +1 8KiB; compute 2ms; wait; compute 2ms
";

fn model(text: &str, more: &[&str]) -> Ended {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("phase.pattern");
    fs::write(&file, text).expect("it can be written");
    nmad(&[&["model", file.to_str().expect("a path in text")], more].concat())
}

#[test]
fn a_phase_is_predicted_and_compared_with_changes() {
    let rails = ["--rails", "4gbit,2.8gbit"];
    let change = ["--what-if", "eager=1MiB", "--what-if", "fragments=32KiB+parallel-send"];
    let ended = model(PATTERN, &[&rails[..], &change, &["--json"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    let schema = Schema::read();
    lines.iter().for_each(|line| schema.check(line).expect("as described"));
    let duration = |index: usize| lines[index]["duration_us"].as_f64().expect("a time");
    assert_eq!((lines.len(), &lines[2]["setting"]), (3, &"fragments=32KiB+parallel-send".into()));
    assert!(duration(1) < duration(0) && duration(2) < duration(0), "{lines:?}");
    let text = model(PATTERN, &rails);
    assert!(text.out.contains("predicted times") && text.out.contains("as it is"), "{}", text.out);
}

#[test]
fn wrong_patterns_and_deadlocks_say_where_and_why() {
    let rails = ["--rails", "1gbit"];
    let unknown = model("ranks 2\nrank 0: send 5 1KiB", &rails);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("line 2") && unknown.err.contains("no rank 5"), "{}", unknown.err);
    let cycle = model("ranks 2\nrank *: send +1 1MiB; recv -1; wait", &rails);
    assert_eq!(cycle.code, Some(1));
    assert!(cycle.err.contains("rank 0 sends") && cycle.err.contains("rank 1 sends"), "{}", cycle.err);
    assert_eq!(nmad(&["model", "/no/such", "--rails", "1gbit"]).code, Some(2));
    assert_eq!(model(PATTERN, &["--rails", "1gbit", "--what-if", "magic"]).code, Some(2));
}

#[test]
fn a_picture_shows_every_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("phase.svg");
    let ended = model(PATTERN, &["--rails", "4gbit", "--svg", path.to_str().expect("a path in text")]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let svg = fs::read_to_string(path).expect("it was drawn");
    assert!(!svg.contains(" B<") && !svg.contains(" B\n"), "calculation has no length: {svg}");
    assert!(svg.contains("rank 0") && svg.contains("rank 2") && svg.contains("calculation"), "{svg}");
    let unwritable = model(PATTERN, &["--rails", "4gbit", "--svg", "/proc/phase.svg"]);
    assert!(unwritable.code == Some(1) && unwritable.err.contains("/proc/phase.svg"), "{}", unwritable.err);
}

#[test]
fn advice_needs_a_trace_and_says_why_there_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = |trace: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nmad"));
        command.args(["run", "-n", "2", "true"]).env("NMAD_ADVICE", "1").env_remove("NMAD_TRACE");
        if trace {
            command.env("NMAD_TRACE", folder.path());
        }
        run(&mut command)
    };
    let untraced = job(false);
    assert_eq!(untraced.code, Some(2), "{}", untraced.err);
    assert!(untraced.err.contains("set NMAD_TRACE"), "{}", untraced.err);
    // The program does not use the library, so it writes no trace.
    let empty = job(true);
    assert_eq!(empty.code, Some(0), "{}", empty.err);
    assert!(empty.err.contains("nmad advice: there is none, since"), "{}", empty.err);
}
