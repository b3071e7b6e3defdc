//! Who accesses a file: its regions, their owners, and whether accesses of one process go by owners, too. All
//! processes have the same layout. It changes in collective calls only, after owners have written everything.

use crate::hints::{Hints, Switch};
use crate::regions::Regions;

/// Whether data go to the file or come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// They come from the file.
    Read,
    /// They go there.
    Write,
}

/// A layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The regions, and who owns them.
    pub regions: Regions,
    /// Accesses of one process are messages to owners.
    pub by_owners: bool,
    /// The reason.
    pub why: &'static str,
    /// In atomic mode one process owns all regions.
    pub is_atomic: bool,
}

/// The conditions of a layout besides hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// The file is in atomic mode.
    pub is_atomic: bool,
    /// Processes see each other's writes at once.
    pub is_coherent: bool,
    /// Processes may write.
    pub writes: bool,
}

impl Layout {
    /// That of a file with blocks of `block` bytes, opened by processes on these nodes.
    pub fn new(hints: &Hints, block: u64, nodes: &[u32], reason: &Reason) -> Layout {
        let all = hints.regions(block, nodes);
        let regions = if reason.is_atomic { all.of_one() } else { all };
        let (by_owners, why) = match hints.alone() {
            // One process can read what no rank writes as well as another.
            _ if reason.is_atomic => (true, "atomic mode"),
            Switch::Enable => (true, "hint or NMAD_MPI_FILE"),
            Switch::Disable => (false, "hint or NMAD_MPI_FILE"),
            _ if nodes.len() == 1 => (false, "one rank"),
            _ if reason.is_coherent => (false, "ranks see each other's writes"),
            _ if !reason.writes => (false, "the file is read only"),
            Switch::Automatic => (true, "nodes do not see each other's writes"),
        };
        Layout { regions, by_owners, why, is_atomic: reason.is_atomic }
    }
}
