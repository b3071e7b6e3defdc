//! Lines to standard output, complaints to standard error: what `nmad-words` has, and more for subcommands.

use serde::Serialize;
use std::fmt::Display;
use std::process::ExitCode;

pub(crate) use nmad_words::{say, say_line, tell_user};

/// The exit code of a command line that makes no sense.
pub(crate) const USAGE: u8 = 2;

/// Prints one JSON object on a line of its own.
pub(crate) fn say_json(object: &impl Serialize) {
    // Figures and names: nothing in them that JSON cannot say.
    say_line(serde_json::to_string(object).unwrap_or_default());
}

/// Tells what went wrong in a subcommand, and with which exit code it ends.
pub(crate) fn complain(subcommand: &str, error: &dyn Display, code: u8) -> ExitCode {
    tell_user(format_args!("nmad {subcommand}: {error}"));
    ExitCode::from(code)
}
