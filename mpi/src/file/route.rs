//! The way of an access of one rank: system calls of its own, or messages to the owners of regions.
//!
//! Where ranks see each other's writes at once, they access a file directly until one of them writes so many
//! short pieces that owners, which join them with those of other ranks, are predicted to be faster. That
//! rank sets a word that all ranks see, and until the next [`File::hand_over`] all go by owners. A rank
//! that was writing directly looks at the word again after its system call; if it is set, owners write the
//! same data again, since their pages may be older.

use super::told::{Begun, Told, Way, owners_of};
use super::{File, Kind, asking, error_of, lock};
use crate::collective::explains;
use crate::error::{Class, Error, Result};
use crate::task::block_on;
use newmadeleine::{Segments, tell_user};
use nmad_file::hints::Switch;
use nmad_file::plan::{self, Load};
use nmad_file::{Backing, Cause, Fault, Pieces, request};
use std::sync::Arc;

/// Writes of fewer pieces do not make all ranks go by owners.
const MANY: u64 = 64;
/// Owners must be faster by this factor: longer accesses that follow are slower by owners.
const FACTOR: u64 = 2;

impl File {
    /// Whether accesses of one rank go by owners now.
    pub(super) fn goes_by_owners(&self) -> bool {
        self.layout().by_owners || self.word.as_ref().is_some_and(|word| word.is_set())
    }

    /// Makes all ranks go by owners, if that is faster for this write and they may.
    pub(super) fn prefer_owners(&self, pieces: &Pieces) {
        let may = pieces.count() as u64 >= MANY && !self.layout().by_owners;
        let Some(word) = self.word.as_ref().filter(|_| may) else { return };
        let load = Load::of(pieces);
        let (direct_ns, owners_ns) = (load.direct_ns(false), plan::asked_ns(load, request::DATA));
        let is_faster = FACTOR * owners_ns < direct_ns && self.disk.is_regular();
        if is_faster && lock(&self.hints).alone() == Switch::Automatic && !word.set(true) && explains() {
            tell_user(format_args!(
                "nmad: {} ({}): rank {} writes {} B in {} pieces, predicted {} us directly and {} us by \
                 owners: accesses of one rank go by owners until the next MPI_File_sync",
                self.disk.path().display(),
                self.disk.system().name,
                self.rank(),
                load.bytes,
                load.pieces,
                direct_ns / 1000,
                owners_ns / 1000,
            ));
        }
    }

    /// Moves data by a system call of this thread: bytes that were moved.
    pub(super) fn move_directly(&self, kind: Kind, (pieces, memory): (&Pieces, &Segments)) -> Result<u64> {
        match kind {
            Kind::Write => self.disk.write(pieces, memory).map(|()| pieces.len()).map_err(error_of),
            Kind::Read => self.disk.read(pieces, memory, lock(&self.hints).gap()).map_err(error_of),
        }
    }

    /// Moves data on the way that is in force: bytes that were moved.
    ///
    /// # Errors
    /// The system refuses it, or no owner is left.
    pub(super) fn move_data(self: &Arc<File>, kind: Kind, data: (&Pieces, &Segments)) -> Result<u64> {
        if kind == Kind::Write {
            self.prefer_owners(data.0);
        }
        let begun = self.begun();
        if !self.goes_by_owners() {
            let done = self.move_directly(kind, data)?;
            if kind == Kind::Read || !self.goes_by_owners() {
                self.ended_alone(begun, kind, (Way::Directly, data.0));
                return Ok(done);
            }
        }
        let done = block_on(asking::access(self, kind, data))?;
        self.ended_alone(begun, kind, (Way::ByOwners, data.0));
        Ok(done)
    }

    /// An access of this rank alone has ended.
    pub(super) fn ended_alone(&self, begun: Option<Begun>, kind: Kind, (way, pieces): (Way, &Pieces)) {
        let Some(begun) = begun else { return };
        let load = Load::of(pieces);
        let (owners, predicted_ns) = match way {
            Way::ByOwners => {
                let owners = owners_of(&self.layout().regions, pieces);
                (owners, plan::asked_ns(load, request::DATA))
            }
            _ => (vec![self.rank()], load.direct_ns(kind == Kind::Read)),
        };
        self.ended(&begun, Told { kind, way, owners, load, predicted_ns });
    }
}

/// A file as the backing of a [`nmad_file::Cache`] of this rank.
pub(super) struct Route<'a>(pub(super) &'a Arc<File>);

impl Backing for Route<'_> {
    fn write(&self, pieces: &Pieces, data: &[u8]) -> std::result::Result<(), Fault> {
        let memory = crate::memory::contiguous(data.as_ptr().cast(), data.len());
        self.0.move_data(Kind::Write, (pieces, &memory)).map(drop).map_err(fault_of)
    }

    fn read(&self, pieces: &Pieces, data: &mut [u8]) -> std::result::Result<u64, Fault> {
        let memory = crate::memory::contiguous(data.as_ptr().cast(), data.len());
        self.0.move_data(Kind::Read, (pieces, &memory)).map_err(fault_of)
    }

    fn size(&self) -> std::result::Result<u64, Fault> {
        self.0.end().map_err(fault_of)
    }
}

/// An error of an access as a cache keeps it.
#[cold]
fn fault_of(error: Error) -> Fault {
    let cause = match error.class() {
        Class::NO_SUCH_FILE => Cause::NoSuchFile,
        Class::FILE_EXISTS => Cause::Exists,
        Class::ACCESS => Cause::Access,
        Class::READ_ONLY => Cause::ReadOnly,
        Class::NO_SPACE => Cause::NoSpace,
        Class::QUOTA => Cause::Quota,
        Class::BAD_FILE => Cause::BadFile,
        Class::FILE_IN_USE => Cause::InUse,
        _ => Cause::Other,
    };
    Fault::worded(cause, error.text())
}
