//! Counting instructions of an example by itself.

use std::process::Command;

/// Instructions of the functions `measured_...` when this program is run with these arguments and this
/// further variable, as callgrind counts them: a thread that ticks does not disturb. None: valgrind is
/// missing, or the run failed.
pub fn instructions(arguments: &[&str], (name, value): (&str, &str)) -> Option<i64> {
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=measured_*"])
        .arg(std::env::current_exe().ok()?)
        .args(arguments)
        // Switched off, rails are learnt from the messages, which costs now and then.
        .env("NMAD_SAMPLE", "auto")
        .env(name, value)
        .output()
        .ok()?;
    let log = String::from_utf8_lossy(&ran.stderr).into_owned();
    log.lines().find(|line| line.contains("Collected"))?.rsplit(' ').next()?.trim().parse().ok()
}
