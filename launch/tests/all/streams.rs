//! Standard input, output and error of the ranks.

use crate::probe::{self, Launcher, launch, ranks};

fn fed(args: &[&str], input: &str) -> probe::Done {
    let mut launcher = Launcher::start(args, &[]);
    launcher.input(input);
    launcher.done()
}

#[test]
fn tagged_lines_stay_whole() {
    let done = ranks(&["-n", "5", "-l"], &["lines", "200"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let filling = "x".repeat(200);
    for rank in 0..5 {
        let tag = format!("[{rank}] ");
        let lines: Vec<&str> = done.out.lines().filter_map(|line| line.strip_prefix(&tag)).collect();
        let expected: Vec<String> = (0..200).map(|line| format!("line {line} {filling} end")).collect();
        assert_eq!(lines, expected, "the lines of rank {rank}, in order");
    }
    assert_eq!(done.out.lines().count(), 1000);
}

#[test]
fn tags_tell_errors_from_output() {
    let done = launch(&["-n", "2", "-l", "sh", "-c", "echo out; printf 'no end' >&2"]);
    let mut out: Vec<&str> = done.out.lines().collect();
    out.sort();
    assert_eq!(out, ["[0] out", "[1] out"]);
    let mut err: Vec<&str> = done.err.lines().collect();
    err.sort();
    assert_eq!(err, ["[0] no end", "[1] no end"]);
}

#[test]
fn untagged_output_is_raw() {
    assert_eq!(launch(&["printf", "%s", "no end"]).out, "no end");
}

#[test]
fn input_goes_to_rank_0() {
    let done = fed(&["-n", "3", "-l", "cat"], "one\ntwo\n");
    assert_eq!((done.code, done.out.as_str()), (0, "[0] one\n[0] two\n"));
}

#[test]
fn input_goes_to_all_or_none_on_request() {
    let done = fed(&["-n", "2", "-l", "--stdin", "all", "cat"], "one\n");
    let mut lines: Vec<&str> = done.out.lines().collect();
    lines.sort();
    assert_eq!(lines, ["[0] one", "[1] one"]);
    assert_eq!(fed(&["-n", "2", "--stdin", "none", "cat"], "one\n").out, "");
}

#[test]
fn much_input_comes_through_whole() {
    let input: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let mut launcher = Launcher::start(&["-n", "2", "--stdin", "all", "cksum"], &[]);
    launcher.input(&input);
    let done = launcher.done();
    let sums: Vec<&str> = done.out.lines().collect();
    assert_eq!(sums.len(), 2);
    assert_eq!(sums[0], sums[1]);
    assert!(sums[0].ends_with(&format!(" {}", input.len())), "{done:?}");
}

#[test]
fn a_rank_need_not_read_its_input() {
    let done = fed(&["-n", "2", "true"], "ignored\n");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
}
