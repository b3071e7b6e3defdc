//! Which ways of access the user allows.

use crate::error::{Class, Result};
use newmadeleine::Options;
use std::sync::OnceLock;

/// What the environment says about it.
const VARIABLE: &str = "NMAD_MPI_WINDOW";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Ranks of a node have memory in common.
    pub(super) shares: bool,
    /// Memory of the program is copied from process to process.
    pub(super) copies: bool,
}

/// The settings of this process.
///
/// # Errors
/// The environment says something that means nothing.
pub(super) fn settings() -> Result<Settings> {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    if let Some(known) = SETTINGS.get() {
        return Ok(*known);
    }
    let copies = Options::load().ok().and_then(|options| options.cross_memory).unwrap_or(true);
    let read = read(&std::env::var(VARIABLE).unwrap_or_default(), copies)?;
    Ok(*SETTINGS.get_or_init(|| read))
}

fn read(value: &str, copies: bool) -> Result<Settings> {
    match value {
        "" | "auto" => Ok(Settings { shares: true, copies }),
        "frames" => Ok(Settings { shares: false, copies: false }),
        _ => Err(Class::ARG
            .error(format!("{VARIABLE}: '{value}' is no way to access windows (there are: auto, frames)"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_names() {
        assert_eq!(read("", true), Ok(Settings { shares: true, copies: true }));
        assert_eq!(read("auto", false), Ok(Settings { shares: true, copies: false }));
        assert_eq!(read("frames", true), Ok(Settings { shares: false, copies: false }));
        let error = read("fast", true).unwrap_err();
        assert!(error.text().contains(VARIABLE) && error.text().contains("frames"), "{error}");
    }
}
