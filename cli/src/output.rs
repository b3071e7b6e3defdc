//! Lines to standard output, complaints to standard error.

use serde::Serialize;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// The exit code of a command line that makes no sense.
pub(crate) const USAGE: u8 = 2;

/// Prints text as it is. A reader that has seen enough, as head(1) does, is no failure.
pub(crate) fn say(text: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line.
pub(crate) fn say_line(text: impl Display) {
    say(format_args!("{text}\n"));
}

/// Prints one JSON object on a line of its own.
pub(crate) fn say_json(object: &impl Serialize) {
    // Figures and names: nothing in them that JSON cannot say.
    say_line(serde_json::to_string(object).unwrap_or_default());
}

/// Tells what went wrong in a subcommand, and with which exit code it ends.
pub(crate) fn complain(subcommand: &str, error: &dyn Display, code: u8) -> ExitCode {
    newmadeleine::tell_user(format_args!("nmad {subcommand}: {error}"));
    ExitCode::from(code)
}
