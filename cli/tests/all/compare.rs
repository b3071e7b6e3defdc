//! `nmad bench compare` against this build alone: installed, compiled, measured, reported, continued.

use crate::command::{Ended, nmad, run};
use std::fs;
use std::path::Path;
use std::process::Command;

fn compare(folder: &Path, more: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nmad"));
    command.args(["bench", "compare", "--rounds", "1", "--out"]).arg(folder.join("out")).args(more);
    run(command.env("NMAD_SAMPLE", "off").env("XDG_CACHE_HOME", folder.join("cache")))
}

/// Lines of `results.jsonl` that are figures.
fn figures(folder: &Path) -> usize {
    let text = fs::read_to_string(folder.join("out/results.jsonl")).expect("there are results");
    text.lines().filter(|line| line.contains("\"kind\":\"cell\"")).count()
}

#[test]
fn this_build_is_measured_and_a_second_run_continues() {
    let folder = tempfile::tempdir().expect("a folder");
    let first =
        compare(folder.path(), &["--peer", "none", "--only", "pingpong", "--place", "node2", "--json"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let report = &first.json()[0];
    let cells = report["cells"].as_array().expect("a list");
    assert!(cells.len() > 10 && report["failed"] == serde_json::json!([]), "{report}");
    for cell in cells {
        let us = cell["times"]["ours"][0]["us"].as_f64().expect("a time");
        assert!(us > 0.0 && us < 1e6, "{cell}");
    }
    assert_eq!(figures(folder.path()), cells.len());
    // The same again measures nothing; another pattern is added, and a missing peer is reported.
    let peer = format!("gone={}", folder.path().join("nowhere").display());
    let second = compare(folder.path(), &["--peer", &peer, "--only", "pingpong,barrier", "--place", "node2"]);
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert!(second.out.contains("missing: gone:") && second.out.contains("no verdict"), "{}", second.out);
    // barrier in a loop and with a barrier before it.
    assert_eq!(figures(folder.path()), cells.len() + 2);
    let page = fs::read_to_string(folder.path().join("out/report.html")).expect("there is a page");
    assert!(page.contains("<svg") && page.contains("barrier loop"));
    let json = folder.path().join("out/report.json");
    let json = json.to_str().expect("a path in text");
    let diff = nmad(&["bench", "compare", "--diff", json, json]);
    assert_eq!(diff.code, Some(0), "{}", diff.err);
    assert!(diff.out.contains("nothing can be said"), "{}", diff.out);
}

#[test]
fn patterns_places_and_peers_that_are_not_there_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for (words, hint) in [
        (["--only", "pingpng"], "pingpong"),
        (["--place", "node3"], "node2"),
        (["--peer", "intel"], "NAME=PREFIX"),
    ] {
        let ended = compare(folder.path(), &words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.err);
        assert!(ended.err.contains(hint), "{words:?}: {}", ended.err);
    }
    let ended = nmad(&["bench", "compare", "--diff", "/no/such", "/no/such"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("/no/such"), "{}", ended.err);
    assert!(!folder.path().join("out").exists());
}
