//! Output of programs: results on standard output, errors on standard error.
//!
//! This is the only way to print. Every crate that prints depends on it; it depends on none of them.
//!
//! A reader that closes the pipe early, as head(1) does, is no failure: later output is dropped, and a
//! program with long output asks [`is_heard`] now and then. Any other error of standard output, such as a
//! full disk, is reported once and makes the program [end](ended) with 1.
//!
//! Also here, because all layers read and write them alike: [sizes](parse_size), [rates](parse_rate), exit
//! codes ([`USAGE`], [`SETTING`]), the version of what is printed as JSON ([`JSON_SCHEMA`]), text in HTML
//! and SVG ([`escaped`]), [files](file) that are safe to write where other users write, too, and the table of
//! all [settings](setting).
#![forbid(unsafe_code)]

pub mod file;
mod markup;
mod number;
mod rate;
pub mod setting;
mod size;

pub use markup::escaped;
pub use rate::{parse_rate, rate};
pub use size::parse_size;

use std::fmt::Display;
use std::io::{Error, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};

/// The exit code of a command line that makes no sense.
pub const USAGE: u8 = 2;
/// The exit code for a wrong setting, wherever it comes from: as for a wrong command line.
pub const SETTING: u8 = 2;

/// The version of the objects that commands print with `--json`. Each has it as `schema`, before all else; it
/// grows when a field disappears or changes its meaning, not when one is added.
pub const JSON_SCHEMA: u32 = 1;

const HEARD: u8 = 0;
/// The reader has gone.
const GONE: u8 = 1;
/// Words are lost.
const LOST: u8 = 2;

/// What became of standard output, of which a process has one.
static OUTPUT: AtomicU8 = AtomicU8::new(HEARD);

/// Prints text as it is.
pub fn say(text: impl Display) {
    if is_heard() {
        let mut out = std::io::stdout().lock();
        said(write!(out, "{text}").and_then(|()| out.flush()));
    }
}

/// Prints a line.
pub fn say_line(text: impl Display) {
    say(format_args!("{text}\n"));
}

/// Takes note of how somebody else's printing to standard output went.
pub fn said(printed: Result<(), Error>) {
    let Err(error) = printed else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        OUTPUT.store(GONE, Ordering::Relaxed);
    } else if OUTPUT.swap(LOST, Ordering::Relaxed) == HEARD {
        tell_user(format_args!("nmad: cannot write to standard output: {error}"));
    }
}

/// Whether what is said now goes to standard output.
pub fn is_heard() -> bool {
    OUTPUT.load(Ordering::Relaxed) == HEARD
}

/// How a program that has ended with `code` ends: with 1 if words were lost.
#[must_use]
pub fn ended(code: ExitCode) -> ExitCode {
    if OUTPUT.load(Ordering::Relaxed) == LOST { ExitCode::FAILURE } else { code }
}

/// Writes a line to standard error with one call, so that those of several ranks do not run into each other.
pub fn tell_user(text: impl Display) {
    // A closed standard error is no failure.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
