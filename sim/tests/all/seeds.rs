//! Runs over many seeds are without violation: with nothing going wrong, and with everything. `.ci/run` makes
//! more runs with each of these flags, optimised.

use nmad_sim::{Deaths, Options, each_death, run_seed};

fn clean(seeds: std::ops::RangeInclusive<u64>, options: &Options, flags: &str) {
    for seed in seeds {
        if let Some(violation) = run_seed(seed, options).violation {
            panic!("seed {seed}: {violation}\nreplay: nmad sim --seed {seed} --explain {flags}");
        }
    }
}

#[test]
fn nothing_is_wrong_when_nothing_goes_wrong() {
    clean(1..=20, &Options { no_faults: true, ..Options::default() }, "--no-faults");
}

#[test]
fn nothing_is_wrong_when_everything_goes_wrong() {
    clean(1..=40, &Options::default(), "");
}

#[test]
fn nothing_is_wrong_over_nothing_but_bad_datagrams() {
    clean(1..=20, &Options { lossy: true, ..Options::default() }, "--lossy");
}

#[test]
fn nothing_stands_still_and_no_slow_rail_is_left_when_rails_fail_for_a_while() {
    clean(1..=12, &Options { outages: true, ..Options::default() }, "--outages");
}

#[test]
fn what_needs_a_dead_host_ends_and_all_else_is_right() {
    let dying = Options { deaths: Deaths::Drawn, ..Options::default() };
    clean(1..=40, &dying, "--deaths");
    clean(1..=20, &Options { lossy: true, ..dying.clone() }, "--deaths --lossy");
    clean(1..=15, &Options { outages: true, ..dying.clone() }, "--deaths --outages");
    clean(1..=15, &Options { threads: Some(4), ..dying }, "--deaths --threads 4");
}

#[test]
fn each_host_may_die_at_each_message() {
    let mut runs = 0;
    for seed in 1..=10 {
        let each = each_death(seed, &Options::default());
        if let Some(violation) = each.report.violation {
            panic!("seed {seed}, {:?}: {violation}\nreplay: nmad sim --seed {seed} --each-death", each.death);
        }
        runs += each.runs;
    }
    assert!(runs > 500, "only {runs} runs: hosts did not die at each message");
}

#[test]
fn shared_files_are_consistent() {
    let files = Options { files: true, ..Options::default() };
    clean(1..=5, &Options { no_faults: true, ..files.clone() }, "--files --no-faults");
    clean(31..=35, &Options { lossy: true, ..files.clone() }, "--files --lossy");
    clean(41..=48, &Options { outages: true, ..files.clone() }, "--files --outages");
    clean(61..=63, &Options { threads: Some(4), ..files.clone() }, "--files --threads 4");
    let explained = Options { explain: true, ..files };
    let mut missing = vec!["sets the atomic mode to true", "no space left", "keep pages", "automatic"];
    for seed in 1..=25 {
        let report = run_seed(seed, &explained);
        assert_eq!(report.violation, None, "replay: nmad sim --seed {seed} --explain --files");
        missing.retain(|words| !report.lines.iter().any(|line| line.contains(words)));
    }
    assert!(missing.is_empty(), "in no run: {missing:?}");
}

#[test]
fn what_was_synchronised_survives_hosts_that_die() {
    let dying = Options { files: true, deaths: Deaths::Drawn, ..Options::default() };
    clean(1..=15, &dying, "--files --deaths");
    clean(41..=45, &Options { lossy: true, ..dying.clone() }, "--files --deaths --lossy");
    clean(51..=55, &Options { threads: Some(4), ..dying.clone() }, "--files --deaths --threads 4");
    let explained = Options { explain: true, hosts: Some(4), ..dying };
    let mut missing = vec!["ends: lost: ", "has the report", "sets the atomic mode to true", "keep pages"];
    for seed in 1..=15 {
        let report = run_seed(seed, &explained);
        assert_eq!(
            report.violation, None,
            "replay: nmad sim --seed {seed} --explain --hosts 4 --files --deaths"
        );
        missing.retain(|words| !report.lines.iter().any(|line| line.contains(words)));
    }
    assert!(missing.is_empty(), "in no run: {missing:?}");
}

#[test]
fn puts_are_there_when_an_unlock_is_answered() {
    clean(301..=350, &Options { no_faults: true, ..Options::default() }, "--no-faults");
}

#[test]
fn each_congestion_control_is_without_violation_over_bad_datagrams() {
    for congestion in nmad_engine::CongestionControl::ALL {
        let options = Options { congestion, lossy: true, ..Options::default() };
        clean(201..=215, &options, &format!("--lossy --congestion {}", congestion.name()));
    }
}

#[test]
fn four_threads_of_each_application_use_the_library_at_the_same_time() {
    let four = Options { threads: Some(4), ..Options::default() };
    clean(1..=10, &four, "--threads 4");
    clean(101..=106, &Options { lossy: true, ..four.clone() }, "--threads 4 --lossy");
    clean(201..=203, &Options { outages: true, ..four.clone() }, "--threads 4 --outages");
    let explained = run_seed(1, &Options { explain: true, ..four });
    let meanwhile = explained.lines.iter().filter(|line| line.ends_with("while a rail works"));
    assert!(meanwhile.count() > 10, "another thread gets the engine while a rail works");
}

#[test]
fn many_hosts_reach_each_other() {
    clean(1..=3, &Options { hosts: Some(16), ..Options::default() }, "--hosts 16");
}

#[test]
fn each_strategy_alone_is_without_violation() {
    for name in nmad_engine::Registry::default().names() {
        let options = Options { strategy: Some(name.into()), ..Options::default() };
        clean(101..=110, &options, &format!("--strategy {name}"));
    }
}

#[test]
fn messages_of_one_node_are_read_from_the_memory_of_their_sender() {
    let options = Options { explain: true, ..Options::default() };
    let reads = |seed| run_seed(seed, &options).lines.iter().any(|line| line.ends_with("are read"));
    assert!((1..=60).any(reads), "in no run a message was read");
}
