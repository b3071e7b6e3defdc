//! Taking away what only debuggers and profilers read.
//!
//! A release build has line tables for backtraces and profiles, and names of all functions; they are four
//! fifths of each file, and those of the standard library are in every one. What programs link with stays.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

use crate::output::tell_user;

/// Strips a file that nobody uses yet with the system's `strip`. Where that is missing or refuses, the file
/// stays as it is, which serves as well, and one line says so.
pub(super) fn strip(file: &Path) {
    let mut command = Command::new("strip");
    command
        .arg("--strip-unneeded")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let why = match command.output() {
        Ok(ended) if ended.status.success() => return,
        Ok(ended) => String::from_utf8_lossy(&ended.stderr).trim().to_owned(),
        Err(error) => format!("cannot run strip: {error}; it comes with the package binutils"),
    };
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tell_user(format_args!("nmad install: the files are larger than they could be: {why}"));
    });
}
