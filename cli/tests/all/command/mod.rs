//! Runs the commands as a user does, for a bounded time.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Nothing that is tested takes longer, on the slowest machine and without optimisation.
const LIMIT: Duration = Duration::from_secs(120);

/// What a command left behind.
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// The lines of standard output as JSON, each of which is what docs/json.schema.json says.
    pub fn json(&self) -> Vec<Value> {
        let schema = Schema::read();
        let parse = |line: &str| {
            let object = serde_json::from_str(line).map_err(|error| error.to_string());
            let checked = object.and_then(|object| schema.check(&object).map(|()| object));
            checked.unwrap_or_else(|error| panic!("{error} in {line}\n{}", self.err))
        };
        self.out.lines().map(parse).collect()
    }
}

/// The schema of all that commands print.
pub struct Schema {
    all: Schemas,
    index: SchemaIndex,
}

impl Schema {
    pub fn read() -> Schema {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/json.schema.json");
        let mut all = Schemas::new();
        let index = Compiler::new().compile(path, &mut all).expect("a schema");
        Schema { all, index }
    }

    /// Whether an object is what it says.
    pub fn check(&self, object: &Value) -> Result<(), String> {
        self.all.validate(object, self.index).map_err(|error| format!("{error:#}"))
    }
}

/// Runs `nmad` with these words.
pub fn nmad(words: &[&str]) -> Ended {
    run(Command::new(env!("CARGO_BIN_EXE_nmad")).args(words))
}

/// Runs a command to its end; fails if it takes too long.
pub fn run(command: &mut Command) -> Ended {
    run_into(Stdio::piped(), command)
}

/// The same with its output into `out`.
pub fn run_into(out: Stdio, command: &mut Command) -> Ended {
    // What the tests themselves run under must not change what they see.
    for name in ["PMI_FD", "PMI_RANK", "PMI_SIZE", "NMAD_TESTBED", "NMAD_STRATEGY", "NMAD_RAILS"] {
        if !command.get_envs().any(|(set, _)| set == name) {
            command.env_remove(name);
        }
    }
    // Nothing is measured, and what the user has measured is not used, unless a test says so.
    if !command.get_envs().any(|(name, _)| name == "NMAD_SAMPLE") {
        command.env("NMAD_SAMPLE", "off").env("XDG_CACHE_HOME", "/dev/null");
    }
    let child = command.stdin(Stdio::null()).stdout(out).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program is there");
    let pid = child.id();
    let (tell, ended) = channel();
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    let output = ended.recv_timeout(LIMIT).unwrap_or_else(|_| {
        let _ = Command::new("kill").arg(pid.to_string()).status();
        panic!("{command:?} takes longer than {LIMIT:?}")
    });
    let output = output.expect("its output can be read");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}
