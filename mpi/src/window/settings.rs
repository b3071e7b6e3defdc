//! Which ways of access the user allows.

use crate::error::{Class, Result};
use newmadeleine::setting::MPI_WINDOW;
use std::sync::OnceLock;

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
    let value = MPI_WINDOW.text().map_err(|why| Class::ARG.error(why))?;
    let read = read(value.as_deref().unwrap_or(MPI_WINDOW.default));
    Ok(*ALLOWED.get_or_init(|| read))
}

fn read(value: &str) -> Allowed {
    match value {
        "network" => Allowed { shares: false, network: true },
        "frames" => Allowed { shares: false, network: false },
        _ => Allowed { shares: true, network: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_names() {
        assert_eq!(read(""), read("auto"));
        assert_eq!(read("network"), Allowed { shares: false, network: true });
        assert_eq!(read("frames"), Allowed { shares: false, network: false });
        assert!(MPI_WINDOW.check("fast").is_err_and(|why| why.contains("frames")));
    }
}
