//! What the user is told: lines on standard error.

use std::fmt::Display;
use std::io::Write;

/// Writes a line to standard error with one call, so that those of several ranks do not run into each other.
pub fn tell_user(text: impl Display) {
    // Who has closed it wants to hear nothing.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
