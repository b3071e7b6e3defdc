//! Which ways of access the user allows.

use crate::error::{Class, Result};
use std::sync::OnceLock;

/// What the environment says about it.
const VARIABLE: &str = "NMAD_MPI_WINDOW";

/// How ranks may reach each other's memory besides with frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    /// Those of a node may have memory in common, and copy to and from each other's.
    pub(super) shares: bool,
    /// The network's adapters may access it.
    pub(super) network: bool,
}

/// What the user allows.
///
/// # Errors
/// The environment says something that means nothing.
pub(super) fn allowed() -> Result<Allowed> {
    static ALLOWED: OnceLock<Allowed> = OnceLock::new();
    if let Some(known) = ALLOWED.get() {
        return Ok(*known);
    }
    let read = read(&std::env::var(VARIABLE).unwrap_or_default())?;
    Ok(*ALLOWED.get_or_init(|| read))
}

fn read(value: &str) -> Result<Allowed> {
    match value {
        "" | "auto" => Ok(Allowed { shares: true, network: true }),
        "network" => Ok(Allowed { shares: false, network: true }),
        "frames" => Ok(Allowed { shares: false, network: false }),
        _ => Err(Class::ARG.error(format!(
            "{VARIABLE}: '{value}' is no way to access windows (there are: auto, network, frames)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_names() {
        assert_eq!(read(""), read("auto"));
        assert_eq!(read("network"), Ok(Allowed { shares: false, network: true }));
        assert_eq!(read("frames"), Ok(Allowed { shares: false, network: false }));
        let error = read("fast").unwrap_err();
        assert!(error.text().contains(VARIABLE) && error.text().contains("frames"), "{error}");
    }
}
