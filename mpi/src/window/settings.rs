//! Which ways of access the user allows.

use crate::error::{Class, Result};
use std::sync::OnceLock;

/// What the environment says about it.
const VARIABLE: &str = "NMAD_MPI_WINDOW";

/// Whether ranks of a node may have memory in common, and reach each other's memory otherwise than with
/// frames.
///
/// # Errors
/// The environment says something that means nothing.
pub(super) fn shares() -> Result<bool> {
    static SHARES: OnceLock<bool> = OnceLock::new();
    if let Some(known) = SHARES.get() {
        return Ok(*known);
    }
    let read = read(&std::env::var(VARIABLE).unwrap_or_default())?;
    Ok(*SHARES.get_or_init(|| read))
}

fn read(value: &str) -> Result<bool> {
    match value {
        "" | "auto" => Ok(true),
        "frames" => Ok(false),
        _ => Err(Class::ARG
            .error(format!("{VARIABLE}: '{value}' is no way to access windows (there are: auto, frames)"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_names() {
        assert_eq!([read(""), read("auto"), read("frames")], [Ok(true), Ok(true), Ok(false)]);
        let error = read("fast").unwrap_err();
        assert!(error.text().contains(VARIABLE) && error.text().contains("frames"), "{error}");
    }
}
