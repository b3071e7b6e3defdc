//! What `--json` prints, held against docs/json.schema.json, which reading it does. The other benchmarks and
//! the demonstration are in `jobs.rs`.

use crate::command::{Ended, Schema, nmad};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_nmad");

/// The objects of a command that ended well and printed nothing else, all of this kind.
fn objects(kind: &str, ended: &Ended) -> Vec<Value> {
    assert_eq!(ended.code, Some(0), "{kind}: {}", ended.err);
    let objects = ended.json();
    assert!(!objects.is_empty(), "{kind}: {}", ended.err);
    for object in &objects {
        assert_eq!((&object["schema"], &object["kind"]), (&1.into(), &kind.into()), "{object}");
    }
    objects
}

/// Two ranks of this host.
fn ranks(words: &[&str]) -> Ended {
    nmad(&[&["run", "-n", "2", "--timeout", "60", PROGRAM], words].concat())
}

#[test]
fn commands_without_ranks_print_what_the_schema_says() {
    objects("info", &nmad(&["info", "--json"]));
    objects("mpi", &nmad(&["info", "--mpi", "--json"]));
    objects("io", &nmad(&["info", "--io", "/tmp", "--ranks", "4", "--json"]));
    objects("sim", &nmad(&["sim", "--seed", "1..3", "--json"]));
    objects("scale", &nmad(&["sim", "--scale", "--family", "barrier", "--json"]));
    objects("windows", &nmad(&["sim", "--scale", "windows", "--ranks", "256", "--json"]));
    objects("bench", &nmad(&["bench", "decision", "--repeat", "2", "--strategy", "split", "--json"]));
}

#[test]
fn commands_in_jobs_print_what_the_schema_says() {
    let info = objects("info", &ranks(&["info", "--json"]));
    assert_eq!((info.len(), info[0]["peers"].as_array().map(Vec::len)), (1, Some(2)), "{info:?}");
    objects("explain", &ranks(&["explain", "64KiB", "--json"]));
    let protocols = objects("protocols", &ranks(&["explain", "--json"]));
    let sizes = protocols[0]["rails"][0]["sizes"].as_array().expect("a list");
    assert_eq!((&sizes[0]["from"], &sizes[sizes.len() - 1]["to"]), (&0.into(), &serde_json::Value::Null));
    assert!(sizes.len() > 1, "one protocol for all sizes: {sizes:?}");
    objects("profile", &ranks(&["sample", "--json"]));
    objects("bench", &ranks(&["bench", "thresholds", "--size", "8", "--repeat", "2", "--json"]));
    objects("bench", &ranks(&["bench", "overlap", "--size", "1KiB", "--repeat", "2", "--json"]));
    objects("bench", &ranks(&["bench", "interference", "--size", "0,1KiB", "--repeat", "2", "--json"]));
    objects("bench", &ranks(&["bench", "multiseg", "--count", "2", "--repeat", "2", "--json"]));
}

#[test]
fn a_testbed_is_shown_as_the_schema_says() {
    if let Err(refused) = nmad_testbed::available() {
        return eprintln!("skipped: {refused}");
    }
    let testbed = nmad(&["testbed", "--rails", "1gbit,500mbit", "--show", "--json"]);
    assert_eq!(objects("testbed", &testbed)[0]["hosts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_field_that_is_not_described_is_noticed() {
    let schema = Schema::read();
    let mut object = nmad(&["sim", "--seed", "1", "--json"]).json().remove(0);
    object["surprise"] = 1.into();
    schema.check(&object).expect_err("not described");
    object.as_object_mut().expect("an object").remove("surprise");
    schema.check(&object).expect("as it is printed");
    object["schema"] = 2.into();
    schema.check(&object).expect_err("another version");
}
