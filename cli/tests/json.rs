//! What `--json` prints, held against docs/json.schema.json.

mod command;

use boon::{Compiler, SchemaIndex, Schemas};
use command::{Ended, nmad};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_nmad");

struct Schema {
    all: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn read() -> Schema {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/json.schema.json");
        let mut all = Schemas::new();
        let index = Compiler::new().compile(path, &mut all).expect("a schema");
        Schema { all, index }
    }

    fn check(&self, object: &Value) -> Result<(), String> {
        self.all.validate(object, self.index).map_err(|error| format!("{error:#}\n{object}"))
    }

    /// Checks that a command ended well and printed objects of this kind, and nothing else.
    fn objects(&self, kind: &str, ended: &Ended) -> Vec<Value> {
        assert_eq!(ended.code, Some(0), "{kind}: {}", ended.err);
        let objects = ended.json();
        assert!(!objects.is_empty(), "{kind}: {}", ended.err);
        for object in &objects {
            assert_eq!((&object["schema"], &object["kind"]), (&1.into(), &kind.into()), "{object}");
            self.check(object).unwrap_or_else(|error| panic!("{kind}: {error}"));
        }
        objects
    }
}

/// Two ranks of this host.
fn ranks(words: &[&str]) -> Ended {
    nmad(&[&["run", "-n", "2", "--timeout", "60", PROGRAM], words].concat())
}

#[test]
fn commands_without_ranks_print_what_the_schema_says() {
    let schema = Schema::read();
    schema.objects("info", &nmad(&["info", "--json"]));
    schema.objects("mpi", &nmad(&["info", "--mpi", "--json"]));
    schema.objects("sim", &nmad(&["sim", "--seed", "1..3", "--json"]));
    schema.objects("bench", &nmad(&["bench", "decision", "--repeat", "2", "--strategy", "split", "--json"]));
}

#[test]
fn commands_in_jobs_print_what_the_schema_says() {
    let schema = Schema::read();
    let info = schema.objects("info", &ranks(&["info", "--json"]));
    assert_eq!((info.len(), info[0]["peers"].as_array().map(Vec::len)), (1, Some(2)), "{info:?}");
    schema.objects("explain", &ranks(&["explain", "64KiB", "--json"]));
    schema.objects("profile", &ranks(&["sample", "--json"]));
    for pattern in ["latency", "bandwidth", "rate"] {
        schema.objects("bench", &ranks(&["bench", pattern, "--size", "8", "--repeat", "2", "--json"]));
    }
    schema.objects("bench", &ranks(&["bench", "thresholds", "--size", "8", "--repeat", "2", "--json"]));
    schema.objects("bench", &ranks(&["bench", "multiseg", "--count", "2", "--repeat", "2", "--json"]));
}

#[test]
fn commands_in_testbeds_print_what_the_schema_says() {
    if let Err(refused) = nmad_testbed::available() {
        return eprintln!("skipped: {refused}");
    }
    let schema = Schema::read();
    let rails = ["--rails", "1gbit,500mbit"];
    let testbed = nmad(&[&["testbed"], &rails[..], &["--show", "--json"]].concat());
    assert_eq!(schema.objects("testbed", &testbed)[0]["hosts"].as_array().map(Vec::len), Some(2));
    let words = ["bench", "prediction", "--size", "256KiB", "--repeat", "2", "--json"];
    schema.objects("bench", &nmad(&[&words[..], &rails].concat()));
    let words = ["bench", "fairness", "--seconds", "1", "--repeat", "1", "--json", "--rails", "100mbit"];
    schema.objects("bench", &nmad(&words));
    let out = tempfile::tempdir().expect("a folder can be made");
    let out = out.path().to_str().expect("UTF-8");
    schema.objects("demo", &nmad(&[&["demo", "--quick", "--json", "--out", out], &rails[..]].concat()));
}

#[test]
fn a_field_that_is_not_described_is_noticed() {
    let schema = Schema::read();
    let mut object = nmad(&["sim", "--seed", "1", "--json"]).json().remove(0);
    schema.check(&object).expect("as it is printed");
    object["surprise"] = 1.into();
    schema.check(&object).expect_err("not described");
    object.as_object_mut().expect("an object").remove("surprise");
    object["schema"] = 2.into();
    schema.check(&object).expect_err("another version");
}
