//! What runs as several ranks: benchmarks, the demonstration, programs in a testbed.

use crate::command::{Ended, nmad};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_nmad");

/// Whether namespaces are allowed here; if not, says why the test is skipped.
fn allowed() -> bool {
    nmad_testbed::available().map_err(|refused| eprintln!("skipped: {refused}")).is_ok()
}

/// Runs a benchmark as two ranks on this host.
fn bench(words: &[&str]) -> Ended {
    let launch = ["run", "-n", "2", "--timeout", "60", PROGRAM, "bench"];
    nmad(&[&launch[..], words].concat())
}

fn positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|figure| figure > 0.0)
}

#[test]
fn latency_prints_an_object_for_each_size() {
    let ended = bench(&["latency", "--size", "8,1KiB", "--repeat", "2", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    assert_eq!(lines.iter().map(|line| line["bytes"].as_u64()).collect::<Vec<_>>(), [Some(8), Some(1024)]);
    for line in lines {
        assert_eq!(
            (&line["bench"], &line["unit"], &line["samples"]),
            (&"latency".into(), &"us".into(), &2.into())
        );
        assert!(positive(&line["median"]) && positive(&line["beside"]["median"]), "{line}");
    }
}

#[test]
fn offload_compares_one_core_with_several_over_two_rails() {
    if !allowed() {
        return;
    }
    let words = ["--rails", "max,max", "--size", "8KiB", "--repeat", "1", "--json"];
    let ended = nmad(&[&["bench", "offload"], &words[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    assert_eq!((lines.len(), &lines[0]["bench"]), (1, &"offload".into()));
    assert!(positive(&lines[0]["alone_us"]) && positive(&lines[0]["several_us"]), "{}", lines[0]);
    let ended = bench(&["offload", "--size", "8KiB", "--repeat", "1"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("use --rails"), "{}", ended.err);
}

#[test]
fn each_strategy_has_its_line_beside_the_same_yardstick() {
    let words = ["rate", "--repeat", "2", "--json", "--strategy", "fifo,aggregate"];
    let ended = bench(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    let strategies: Vec<_> = lines.iter().map(|line| line["strategy"].as_str()).collect();
    assert_eq!(strategies, [Some("fifo"), Some("aggregate")]);
    assert_eq!(
        lines[0]["beside"],
        serde_json::json!({ "difference": lines[0]["beside"]["difference"],
        "ratio": lines[0]["beside"]["ratio"], "name": "bare ring", "median": lines[1]["beside"]["median"],
        "lower": lines[1]["beside"]["lower"], "upper": lines[1]["beside"]["upper"] })
    );
}

#[test]
fn bandwidth_and_multiseg_print_tables() {
    let ended = bench(&["bandwidth", "--size", "1MiB", "--repeat", "2", "--one-way"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("one way over shm, MB/s") && ended.out.contains("\n1 MiB"), "{}", ended.out);
    let ended = bench(&["multiseg", "--count", "3", "--repeat", "2"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("3 messages") && ended.out.contains("one message"), "{}", ended.out);
}

#[test]
fn predictions_are_compared_with_what_messages_took() {
    let words = ["bench", "prediction", "--rails", "1gbit,500mbit", "--size", "256KiB", "--repeat", "5"];
    if allowed() {
        let ended = nmad(&[&words[..], &["--json"]].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let line = &ended.json()[0];
        assert_eq!((&line["bytes"], &line["messages"]), (&262_144.into(), &5.into()));
        assert!(positive(&line["predicted_us"]) && positive(&line["took_us"]), "{line}");
    }
    let ended = bench(&["prediction", "--size", "256KiB", "--repeat", "5"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("several rails"), "{}", ended.err);
}

#[test]
fn a_job_that_is_no_pair_is_told_what_to_do() {
    let ended = nmad(&["run", "-n", "3", "--timeout", "60", PROGRAM, "bench", "latency"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("wants 2 ranks, and the job has 3"), "{}", ended.err);
}

#[test]
fn without_a_job_it_starts_itself() {
    for more in [&["--here"][..], &["--rails", "1gbit"]] {
        let words = ["bench", "latency", "--size", "8", "--repeat", "2", "--json"];
        let ended = nmad(&[&words[..], more].concat());
        assert_eq!(ended.code, Some(0), "{more:?}: {}", ended.err);
        assert_eq!(ended.json().len(), 1, "{more:?}");
    }
}

#[test]
fn a_testbed_gives_back_the_exit_code_of_the_job_in_it() {
    if !allowed() {
        return;
    }
    let job = ["run", "-n", "2", "--timeout", "60", "sh", "-c", "test $PMI_RANK = 0 || exit 7"];
    let ended = nmad(&[&["testbed", "--", PROGRAM][..], &job].concat());
    assert_eq!(ended.code, Some(7), "{}", ended.err);
    let names = ["testbed", "--", PROGRAM, "run", "-n", "2", "-l", "hostname"];
    let ended = nmad(&names);
    let mut lines: Vec<&str> = ended.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] host0", "[1] host1"], "{}", ended.err);
}

#[test]
fn the_demonstration_tells_shares_and_draws() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("pictures");
    let ended = nmad(&["demo", "--quick", "--json", "--out", out.to_str().expect("text")]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    for line in &lines {
        assert!(positive(&line["mb_per_s"]) && positive(&line["share_of_sum"]), "{line}");
        assert!(line["rails"].is_array() && line["bytes"].is_u64() && line["strategy"].is_string(), "{line}");
    }
    let split = |line: &&Value| line["strategy"] == "auto" && line["bytes"].as_u64() >= Some(4 << 20);
    let split: Vec<&Value> = lines.iter().filter(split).collect();
    assert_eq!(split[0]["rails"], serde_json::json!(["4gbit", "2.8gbit"]));
    // Far less than it reaches: a machine under load must not fail here, a rail left alone must.
    assert!(split.iter().all(|line| line["share_of_sum"].as_f64() > Some(0.5)), "{split:?}");
    let drivers = |line: &Value| line["drivers"].clone();
    assert!(split.iter().all(|line| drivers(line) == serde_json::json!(["tcp"])), "{split:?}");
    for name in ["bandwidth.svg", "timeline.svg"] {
        let svg = std::fs::read_to_string(out.join(name)).expect(name);
        let picture = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(picture.root_element().tag_name().name(), "svg", "{name}");
    }
}

#[test]
fn the_demonstration_measures_each_rail_by_each_of_its_drivers() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().to_str().expect("text");
    if !allowed() {
        return;
    }
    let rails = ["--rails", "4gbit,1gbit", "--driver", "tcp,udp"];
    let ended = nmad(&[&["demo", "--quick", "--json", "--out", out][..], &rails].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    for driver in ["tcp", "udp"] {
        let rate = |rail: &str| {
            let is_it = |line: &&Value| {
                line["rails"] == serde_json::json!([rail])
                    && line["drivers"] == serde_json::json!([driver])
                    && line["bytes"] == 4 << 20
            };
            lines.iter().find(is_it).and_then(|line| line["mb_per_s"].as_f64()).expect("a line")
        };
        // 500 and 125 MB/s at most.
        let (fast, slow) = (rate("4gbit"), rate("1gbit"));
        assert!(fast > slow && slow < 135.0, "{driver}: {fast} and {slow} MB/s; {}", ended.err);
    }
}

#[test]
fn streams_go_on_when_a_rail_fails_and_use_it_again() {
    let ended = nmad(&["run", "-n", "2", "--timeout", "60", PROGRAM, "bench", "failover", "--size", "8"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("two rails at least"), "{}", ended.err);
    if !allowed() {
        return;
    }
    let picture = tempfile::tempdir().expect("a folder");
    let svg = picture.path().join("stalls.svg");
    let name = svg.to_str().expect("a name");
    let how = ["bench", "failover", "--size", "64KiB", "--moments", "1", "--svg", name, "--json"];
    let ended = nmad(&how);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    assert_eq!(lines.len(), 2, "one way and both ways: {}", ended.out);
    for line in &lines {
        // Each message was checked; how long a stream pauses on a busy machine is no matter here.
        assert!(positive(&line["before_mb_per_s"]) && line["stall_ms"].is_number(), "{line}");
    }
    assert!(ended.err.contains("left, "), "{}", ended.err);
    assert!(std::fs::read_to_string(&svg).expect("a picture").contains("64 KiB, both ways"));
}

/// How large their parts are depends on the load of the machine, and takes longer to measure: `bench/fair`.
#[test]
fn flows_on_one_rail_are_measured_beside_each_driver_and_plain_sockets() {
    if !allowed() {
        return;
    }
    let how = ["--rails", "1gbit", "--driver", "udp,tcp", "--repeat", "1", "--seconds", "1", "--json"];
    let ended = nmad(&[&["bench", "fairness"][..], &how].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    let beside: Vec<_> = lines.iter().map(|line| line["beside"].as_str().unwrap_or_default()).collect();
    let plain = ["plain reno 512 KiB", "plain reno autotuned", "plain untouched"];
    assert_eq!(beside, [&["udp/r0", "tcp/r0"][..], &plain].concat());
    for line in &lines {
        assert_eq!(line["flow"], "udp/r0");
        let share = line["share"].as_f64().expect("a number");
        // 1 Gbit/s is 125 MB/s, and some of what is counted may have come before.
        let together = line["together_mb_per_s"].as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&share) && together > 1.0 && together < 250.0, "{line}");
    }
}

#[test]
fn flows_on_this_host_share_its_interface() {
    let how = ["--here", "--repeat", "1", "--seconds", "1", "--json"];
    let ended = nmad(&[&["bench", "fairness"][..], &how].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let lines = ended.json();
    assert!(lines.len() > 1 && lines.iter().all(|line| line["flow"] == "tcp/lo"), "{}", ended.out);
}
