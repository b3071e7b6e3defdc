//! The way of an access of one process: a system call of its own, or messages to the owners of regions.
//!
//! Where processes see each other's writes at once, they access a file directly until one of them writes
//! so many short pieces that owners, which join them with those of other processes, are predicted to be
//! faster. That process sets a word that all see ([`crate::word::Word`]), and until the next hand-over all
//! go by owners. A process that was writing directly looks at the word again after its system call; if it
//! is set, owners write the same data again, since their pages may be older.

use crate::asking::{self, Asking};
use crate::fault::Fault;
use crate::layout::Kind;
use crate::piece::Pieces;
use crate::plan::{self, Load};
use crate::request;
use crate::word::Word;
use nmad_engine::Segments;
use std::sync::Arc;

/// Writes of fewer pieces do not make all processes go by owners.
const MANY: u64 = 64;
/// Owners must be faster by this factor: longer accesses that follow are slower by owners.
const FACTOR: u64 = 2;

/// Who calls the file system for an access of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The process itself.
    Directly,
    /// The owners of the regions, by messages.
    ByOwners,
}

/// Has accesses of all processes go by owners, if that is predicted to be so much faster for this write, and
/// `may` be. Returns the predicted nanoseconds, directly and by owners, unless they did already.
pub fn prefer_owners<A: Asking>(
    process: &A,
    pieces: &Pieces,
    may: impl FnOnce() -> bool,
) -> Option<(u64, u64)> {
    if (pieces.count() as u64) < MANY {
        return None;
    }
    let load = Load::of(pieces);
    let (direct_ns, owners_ns) = (load.written_ns(), plan::asked_ns(load, request::DATA));
    let is_faster = FACTOR * owners_ns < direct_ns;
    let word = process.word().filter(|_| is_faster && !process.layout().by_owners && may())?;
    (!word.prefer_owners()).then_some((direct_ns, owners_ns))
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
