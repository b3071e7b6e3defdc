//! The way of an access of one process: a system call of its own, or messages to the owners of regions.
//!
//! Where processes see each other's writes at once, they access a file directly until one of them writes so
//! many short pieces that owners, which join them with those of other processes, are predicted to be faster.
//! That process sets a word that all see ([`Word`]), and until the next hand-over all go by owners. A process
//! that was writing directly looks at the word again after its system call; if it is set, owners write the
//! same data again, since their pages may be older.

use crate::asking::{self, Asking};
use crate::fault::Fault;
use crate::layout::Kind;
use crate::piece::Pieces;
use crate::plan::{self, Load};
use crate::request;
use nmad_engine::Segments;
use std::sync::Arc;

/// Writes of fewer pieces do not make all processes go by owners.
const MANY: u64 = 64;
/// Owners must be faster by this factor: longer accesses that follow are slower by owners.
const FACTOR: u64 = 2;

/// A word that all processes of a file see, at first 0. It says how accesses of one process go where that may
/// change.
pub trait Word {
    /// Its value.
    fn load(&self) -> u64;
    /// Changes it in one step: what it was before.
    fn change(&self, to: impl FnMut(u64) -> u64) -> u64;

    /// Whether accesses go by owners.
    fn has_owners(&self) -> bool {
        self.load() != DIRECTLY
    }

    /// Whether owners keep data in memory.
    fn keeps(&self) -> bool {
        self.load() == BY_OWNERS
    }

    /// Has accesses go by owners; whether they did already.
    fn prefer_owners(&self) -> bool {
        self.change(|_| BY_OWNERS) != DIRECTLY
    }

    /// Owners keep nothing from now on, so that accesses may go directly when all have written what they
    /// have.
    fn begin_to_close(&self) {
        self.change(|was| if was == BY_OWNERS { CLOSING } else { was });
    }

    /// Accesses go directly, if no process has preferred owners in the meantime.
    fn close(&self) {
        self.change(|was| if was == CLOSING { DIRECTLY } else { was });
    }
}

/// Each process makes system calls of its own. If a request still reaches an owner in this state, the owner
/// performs it at once and caches nothing.
const DIRECTLY: u64 = 0;
/// All go by owners.
const BY_OWNERS: u64 = 1;
/// All go by owners, who keep nothing.
const CLOSING: u64 = 2;

/// Who calls the file system for an access of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The process itself.
    Directly,
    /// The owners of the regions, by messages.
    ByOwners,
}

/// Predicted nanoseconds of a write, directly and by owners, if owners are so much faster that all processes
/// should go by them.
pub fn prefers_owners(pieces: &Pieces) -> Option<(u64, u64)> {
    if (pieces.count() as u64) < MANY {
        return None;
    }
    let load = Load::of(pieces);
    let (direct_ns, owners_ns) = (load.direct_ns(false), plan::asked_ns(load, request::DATA));
    (FACTOR * owners_ns < direct_ns).then_some((direct_ns, owners_ns))
}

/// Moves data on the way that is in force: bytes that were moved. `directly` makes the system calls of this
/// process.
///
/// # Errors
/// The system refuses it, or no owner is left.
pub async fn perform<A: Asking, D: Future<Output = Result<u64, Fault>>>(
    process: &Arc<A>,
    kind: Kind,
    data: (&Pieces, &Segments),
    directly: impl FnOnce() -> D,
) -> Result<(u64, Way), A::Error> {
    if !process.goes_by_owners() {
        let done = directly().await.map_err(|fault| process.error(asking::Failed::Fault(fault)))?;
        if kind == Kind::Read || !process.goes_by_owners() {
            return Ok((done, Way::Directly));
        }
    }
    Ok((asking::access(process, kind, data).await?, Way::ByOwners))
}
