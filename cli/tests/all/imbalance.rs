//! `nmad bench imbalance` with this build alone: P5's programs are compiled, run, checked and drawn.

use crate::command::{Ended, run};
use std::fs;
use std::path::Path;
use std::process::Command;

fn imbalance_of(folder: &Path, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nmad"));
    command.args(["bench", "imbalance", "--quick"]).args(words);
    run(command.env("NMAD_SAMPLE", "off").env("XDG_CACHE_HOME", folder.join("cache")))
}

#[test]
fn every_program_runs_in_every_variant_with_the_right_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let pictures = folder.path().join("pictures");
    let words = "--peer none --place node4 --variant plain,parallel,fragments,both --size 96KiB --elements 9 \
                 --degree 3 --calculation 100 --iterations 5 --json --svg";
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.push(pictures.to_str().expect("a path in text"));
    let ended = imbalance_of(folder.path(), &words);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let figures = ended.json();
    assert_eq!(figures.len(), 16, "{}", ended.err);
    for figure in &figures {
        let by_rank = figure["by_rank"].as_array().expect("a list");
        let sum = |name: &str| by_rank.iter().filter_map(|rank| rank[name].as_u64()).sum::<u64>();
        assert_eq!((&figure["bench"], by_rank.len()), (&"imbalance".into(), 4), "{figure}");
        assert!(sum("messages") >= 12 && sum("bytes") > 0, "{figure}");
        assert!(figure["imbalance"].as_f64().is_some_and(|ratio| ratio >= 1.0), "{figure}");
    }
    // A message of up to 96 KiB is up to two fragments of 64 KiB.
    let messages = |variant: &str| {
        let is_it =
            |figure: &&serde_json::Value| figure["program"] == "overlap" && figure["variant"] == variant;
        let figure = figures.iter().find(is_it).expect("it was run");
        figure["by_rank"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|rank| rank["messages"].as_u64())
            .sum()
    };
    let (plain, cut): (u64, u64) = (messages("plain"), messages("fragments"));
    assert!(plain == 12 && cut > 12, "{plain} {cut}");
    let drawn = fs::read_to_string(pictures.join("node4-overlap-variants.svg")).expect("a picture");
    assert!(drawn.contains("ours, fragments"), "{drawn}");
    assert!(
        pictures.join("node4-minife.svg").is_file() && pictures.join("node4-nooverlap-degrees.svg").is_file()
    );
    flooded(folder.path());
    uneven(folder.path());
}

/// miniFE with uneven rows on a brick of 29,791 nodes: its programs check the residual and the solution. The
/// rank with the most rows computes longest.
fn uneven(folder: &Path) {
    let calculations = |imbalance: &str| {
        let words =
            "--peer none --program minife,minife-overlap --place node4 --elements 30 --json --imbalance";
        let words: Vec<&str> = words.split_whitespace().chain([imbalance]).collect();
        let ended = imbalance_of(folder, &words);
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let figures = ended.json();
        assert_eq!(figures.len(), 2, "{}", ended.err);
        let of = |rank: &serde_json::Value| rank["calculation_us"].as_f64().expect("a number");
        let by_rank = figures[0]["by_rank"].as_array().expect("a list");
        by_rank.iter().map(of).collect::<Vec<f64>>()
    };
    let times = calculations("60");
    assert!(times[3] > 1.5 * times[0], "{times:?}");
}

/// Messages that nobody has asked for, some 8 MB in each burst, beside a credit of 1 MiB.
fn flooded(folder: &Path) {
    let words = "--peer none --program flood --place node2 --degree 1 --size 80KiB --messages 200 \
                 --calculation 2000 --iterations 3 --json";
    let mut command = Command::new(env!("CARGO_BIN_EXE_nmad"));
    command.args(["bench", "imbalance", "--quick"]).args(words.split_whitespace());
    command.env("NMAD_SAMPLE", "off").env("NMAD_CREDIT", "1MiB").env("XDG_CACHE_HOME", folder.join("cache"));
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let figures = ended.json();
    let by_rank = figures[0]["by_rank"].as_array().expect("a list");
    for rank in by_rank {
        let of = |name: &str| rank[name].as_u64().expect("a number");
        assert!(of("messages") == 200 && of("bytes") > 6 << 20, "{rank}");
        assert!(of("memory") < 5 << 20, "{rank}");
    }
}

#[test]
fn what_there_is_not_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for (words, hint) in [
        (["--program", "toy"], "nooverlap"),
        (["--place", "moon"], "hosts8"),
        (["--degree", "5"], "there are 1"),
        (["--peer", "intel"], "NAME=PREFIX"),
    ] {
        let ended = imbalance_of(folder.path(), &words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.err);
        assert!(ended.err.contains(hint), "{words:?}: {}", ended.err);
    }
    assert!(!folder.path().join("cache").exists());
    let unwritable = imbalance_of(folder.path(), &["--peer", "none", "--svg", "/proc/pictures"]);
    assert_eq!(unwritable.code, Some(1));
    assert!(unwritable.err.contains("/proc/pictures"), "{}", unwritable.err);
}
