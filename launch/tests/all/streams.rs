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
fn long_lines_stay_whole() {
    let script = "for i in 1 2 3; do printf '%*s\n' 300000 $PMI_RANK; done";
    let done = launch(&["-n", "3", "-l", "bash", "-c", script]);
    let mut lines: Vec<&str> = done.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 9, "{}", done.err);
    for (line, rank) in lines.iter().zip([0, 0, 0, 1, 1, 1, 2, 2, 2]) {
        assert!(line.starts_with(&format!("[{rank}]  ")) && line.len() == 4 + 300_000, "{}", &line[..20]);
        assert!(line.ends_with(&format!("  {rank}")));
    }
}

#[test]
fn the_time_can_stand_before_each_line() {
    for (options, rest) in [(vec!["--timestamp-output"], "a"), (vec!["--output", "tag,timestamp"], "[0] a")] {
        let done = launch(&[&options[..], &["sh", "-c", "echo a; echo a"]].concat());
        assert_eq!(done.out.lines().count(), 2, "{done:?}");
        for line in done.out.lines() {
            let (time, end) = line.split_once(' ').expect("a blank");
            assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{line}");
            assert_eq!(end, rest);
        }
    }
}

#[test]
fn output_goes_to_files_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().to_str().expect("text");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    let say = ["sh", "-c", "echo out $PMI_RANK; echo err $PMI_RANK >&2"];
    let done = launch(&[&["-n", "2", "--output-filename", at], &say[..]].concat());
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""));
    assert_eq!(read("1/rank.0/stdout") + &read("1/rank.1/stderr"), "out 0\nerr 1\n");
    let pattern = format!("{at}/out-%r");
    let done = launch(&[&["-n", "2", "-l", "-outfile-pattern", &pattern], &say[..]].concat());
    assert_eq!((done.code, done.out.as_str(), done.err.lines().count()), (0, "", 2));
    assert_eq!(read("out-0") + &read("out-1"), "out 0\nout 1\n");
    let done = launch(&["-errfile-pattern", "/proc/no/such", "true"]);
    assert!(done.code == 2 && done.err.contains("rank 0 cannot be written to /proc/no/such"), "{done:?}");
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
fn input_goes_to_another_rank_all_or_none_on_request() {
    assert_eq!(fed(&["-n", "3", "-l", "-s", "1", "cat"], "one\n").out, "[1] one\n");
    let done = fed(&["-n", "2", "-s", "2", "cat"], "one\n");
    assert!(done.code == 2 && done.err.contains("for rank 2 (--stdin)"), "{done:?}");
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
