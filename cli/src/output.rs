//! Lines to standard output, complaints to standard error: what `nmad-words` has, and more for subcommands.

use newmadeleine::SessionError;
use nmad_bench::pattern::BenchError;
use serde::Serialize;
use std::fmt::Display;
use std::process::ExitCode;

pub(crate) use nmad_words::{SETTING, USAGE, say, say_line, tell_user};

/// The exit code of what failed, although the command line and the settings make sense.
pub(crate) const FAILED: u8 = 1;

/// An object as it is printed: the version of its form, its kind, and its fields.
#[derive(Serialize)]
struct Object<'a, T> {
    schema: u32,
    kind: &'a str,
    #[serde(flatten)]
    fields: &'a T,
}

/// Prints one JSON object of a kind that docs/json.md describes on a line of its own.
pub(crate) fn say_json(kind: &str, fields: &impl Serialize) {
    say_line(json(kind, fields));
}

/// The line that [`say_json`] prints.
pub(crate) fn json(kind: &str, fields: &impl Serialize) -> String {
    // Figures and names: nothing in them that JSON cannot say.
    let object = Object { schema: nmad_words::JSON_SCHEMA, kind, fields };
    serde_json::to_string(&object).unwrap_or_default()
}

/// Tells what went wrong in a subcommand, and with which exit code it ends.
pub(crate) fn complain(subcommand: &str, error: &dyn Display, code: u8) -> ExitCode {
    tell_user(format_args!("nmad {subcommand}: {error}"));
    ExitCode::from(code)
}

/// Why a subcommand ends, and its exit code: 2 for a wrong setting, 1 for everything else.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    /// Tells it.
    pub(crate) fn complain(&self, subcommand: &str) -> ExitCode {
        complain(subcommand, &self.text, self.code)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Failure {
        let is_setting = matches!(error, SessionError::Setting { .. });
        Failure { text: error.to_string(), code: if is_setting { SETTING } else { FAILED } }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        match error {
            BenchError::Session(error) => error.into(),
            other => other.to_string().into(),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure { text, code: FAILED }
    }
}
