//! The way of an access of one rank, as this rank takes it ([`nmad_file::access`]): system calls of its own,
//! or messages to the owners of regions.

use super::told::{Begun, Told, owners_of};
use super::{File, Kind, lock, told};
use crate::collective::explains;
use crate::error::Result;
use crate::task::block_on;
use newmadeleine::{Segments, tell_user};
use nmad_file::access::{perform, prefer_owners};
use nmad_file::hints::Switch;
use nmad_file::plan::{self, Load};
use nmad_file::{Asking, Fault, Pieces, Way, request};
use std::future::ready;
use std::sync::Arc;

impl File {
    /// Makes all ranks go by owners, if that is faster for this write and they may.
    pub(super) fn prefer_owners(&self, pieces: &Pieces) {
        let may = || self.disk.is_regular() && lock(&self.hints).alone() == Switch::Automatic;
        let Some((direct_ns, owners_ns)) = prefer_owners(self, pieces, may) else { return };
        if explains() {
            let load = Load::of(pieces);
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

    /// Predicted nanoseconds of an access by copies or system calls of this rank.
    pub(super) fn direct_ns(&self, kind: Kind, pieces: &Pieces) -> u64 {
        if let Some(copied_ns) = self.disk.copied_ns(pieces) {
            return copied_ns;
        }
        match kind {
            Kind::Write => Load::of(pieces).written_ns(),
            Kind::Read => plan::read_ns(pieces, lock(&self.hints).gap()),
        }
    }

    /// Moves data of an access of this rank by copies from or to mapped memory; none: it takes another way.
    /// So does a write if accesses go by owners since it began: an owner may have read its pages before.
    pub(super) fn copy(&self, kind: Kind, data: (&Pieces, &Segments)) -> Option<u64> {
        let begun = self.begun();
        let done = self.disk.copy(kind, data)?;
        if kind == Kind::Write && self.goes_by_owners() {
            return None;
        }
        self.ended_alone(begun, kind, (Way::Directly, data.0));
        Some(done)
    }

    /// Moves data on this thread, by copies or by a system call: bytes that were moved.
    pub(super) fn move_here(
        &self,
        kind: Kind,
        data: (&Pieces, &Segments),
    ) -> std::result::Result<u64, Fault> {
        self.disk.copy(kind, data).map_or_else(|| self.call_system(kind, data), Ok)
    }

    /// Moves data by a system call of this thread: bytes that were moved.
    pub(super) fn call_system(
        &self,
        kind: Kind,
        (pieces, memory): (&Pieces, &Segments),
    ) -> std::result::Result<u64, Fault> {
        match kind {
            Kind::Write => self.disk.write(pieces, memory).map(|()| pieces.len()),
            // One piece has no gap.
            Kind::Read if pieces.count() == 1 => self.disk.read(pieces, memory, 0),
            Kind::Read => self.disk.read(pieces, memory, lock(&self.hints).gap()),
        }
    }

    /// Moves data on the way that is in force: bytes that were moved.
    ///
    /// # Errors
    /// The system refuses it, or no owner is left.
    pub(super) fn move_data(self: &Arc<File>, kind: Kind, data: (&Pieces, &Segments)) -> Result<u64> {
        if !self.goes_by_owners()
            && let Some(done) = self.copy(kind, data)
        {
            return Ok(done);
        }
        if kind == Kind::Write {
            self.prefer_owners(data.0);
        }
        let begun = self.begun();
        let moved = perform(self, kind, data, || ready(self.call_system(kind, data)));
        // A system call of this thread has returned when the future is looked at first.
        let (done, way) = block_on(moved)?;
        self.ended_alone(begun, kind, (way, data.0));
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
            Way::Directly => (vec![self.rank()], self.direct_ns(kind, pieces)),
        };
        let way = told::Way::Alone(way);
        self.ended(&begun, Told { kind, way, owners, load, predicted_ns });
    }
}
