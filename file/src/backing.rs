//! The file under a cache: one on disk, or one in memory for tests.

use crate::disk::Disk;
use crate::fault::Fault;
use crate::memory::{lent, lent_to_read};
use crate::piece::Pieces;
use crate::plan;

/// The operations on a file that an owner and its cache call.
pub trait Backing {
    /// Writes data to pieces, which ascend.
    ///
    /// # Errors
    /// Not all of it was written.
    fn write(&self, pieces: &Pieces, data: &[u8]) -> Result<(), Fault>;

    /// Reads pieces, which ascend: how many bytes there were before the file ended.
    ///
    /// # Errors
    /// The system refuses it.
    fn read(&self, pieces: &Pieces, data: &mut [u8]) -> Result<u64, Fault>;

    /// The length of the file in bytes.
    ///
    /// # Errors
    /// The system refuses it.
    fn size(&self) -> Result<u64, Fault>;
}

impl Backing for Disk {
    fn write(&self, pieces: &Pieces, data: &[u8]) -> Result<(), Fault> {
        Disk::write(self, pieces, &lent_to_read(data))
    }

    fn read(&self, pieces: &Pieces, data: &mut [u8]) -> Result<u64, Fault> {
        Disk::read(self, pieces, &lent(data), plan::GAP)
    }

    fn size(&self) -> Result<u64, Fault> {
        Disk::size(self)
    }
}
