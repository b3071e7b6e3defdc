//! Short records of one process stay in its own memory: several are written by one system call or one
//! message, and several are read by one.
//!
//! The standard lets other processes see what was written after MPI_File_sync only. Programs rely on more:
//! that a write is seen by a process that has received a message which was sent later. So a process writes
//! delayed data and forgets data that it has read ([`settle`]) when it communicates, before and afterwards. A
//! read that follows a message then finds all writes that preceded the message.

use crate::cache::Cache;
use crate::fault::Fault;
use crate::layout::Kind;
use crate::piece::Pieces;
use nmad_engine::Segments;
use std::borrow::Cow;
use std::ops::DerefMut;

/// Reads of at least so many bytes go past it. Records of 4 KiB of two ranks, interleaved, took 2 times as
/// long with it as MPICH's, which make a system call each, those of 100 B 0.3 times (tmpfs, two cores of an
/// EPYC beside other processes).
const LONG_READ: u64 = 1 << 10;
/// Writes of at least so many bytes go past it, unless they follow each other: pieces with gaps are written
/// one by one in the end.
const LONG_WRITE: u64 = 512;
/// Writes that follow each other go past it from this length on: with it those of 1000 B took 0.4 times as
/// long as MPICH's, those of 4 KiB 1.6 times (ext4, as above).
const LONG: u64 = 2 << 10;
/// Writes that go by owners go past it from this length on: several that are kept are one message.
const LONG_MESSAGE: u64 = 4 << 10;
/// Bytes that wait at most, whatever an owner may keep.
const BOUND: u64 = 256 << 10;

/// Short records of a file in the memory of one process.
pub struct Near {
    cache: Cache,
    /// Where the file ended at the last read; `None`: unknown.
    end: Option<u64>,
    /// The byte behind the last write.
    behind: u64,
    /// The process knows that something may be in memory.
    pub is_listed: bool,
}

/// The accesses of one process to a file, of which short ones are kept.
pub trait Keeping {
    /// An error of an access.
    type Error;
    /// What gives access to the records.
    type Guard<'a>: DerefMut<Target = Near>
    where
        Self: 'a;

    /// The records; waits while another thread has them.
    fn near(&self) -> impl Future<Output = Self::Guard<'_>>;
    /// Whether accesses of one process go by owners now.
    fn goes_by_owners(&self) -> bool;
    /// Whether nothing may be kept, and every access is done at once.
    fn is_strict(&self) -> bool;
    /// Something may be kept from now on.
    fn is_kept(&self);
    /// Nothing is kept any more.
    fn is_kept_no_more(&self) {}
    /// Whether something may be kept.
    fn may_keep(&self) -> bool {
        true
    }
    /// The error of an access that the system has refused.
    fn error(&self, fault: Fault) -> Self::Error;
    /// Moves data by copies from or to mapped memory: bytes that were moved; none: it takes another way.
    fn copy(&self, kind: Kind, data: (&Pieces, &Segments)) -> Option<u64> {
        let _ = (kind, data);
        None
    }
    /// Whether the length of the file is known, so that [`Keeping::copy`] does not ask.
    fn knows_size(&self) -> bool {
        false
    }
    /// Forgets how long the file was: other processes may have changed that.
    fn unsure(&self) {}
    /// Moves data on the way that is in force: bytes that were moved.
    fn perform(
        &self,
        kind: Kind,
        data: (&Pieces, &Segments),
    ) -> impl Future<Output = Result<u64, Self::Error>>;
    /// The same of data in memory of this crate.
    fn write(&self, pieces: &Pieces, data: &[u8]) -> impl Future<Output = Result<(), Fault>>;
    /// The same of a read.
    fn read(&self, pieces: &Pieces, data: &mut [u8]) -> impl Future<Output = Result<u64, Fault>>;
    /// Where the file ends, without what waits here.
    fn end(&self) -> impl Future<Output = Result<u64, Fault>>;
}

impl Near {
    /// One that keeps up to `bound` bytes of data that wait.
    pub fn new(bound: u64) -> Near {
        Near {
            cache: Cache::new(u64::MAX, bound.min(BOUND), LONG),
            end: None,
            behind: u64::MAX,
            is_listed: false,
        }
    }

    /// Keeps up to `bound` bytes from now on. Everything was written before.
    pub fn set(&mut self, bound: u64) {
        self.cache.set(u64::MAX, bound.min(BOUND));
    }

    /// Has the process know that something may be in memory.
    fn list(&mut self, file: &impl Keeping) {
        if !self.is_listed {
            // Before it reads: a thread that has written looks afterwards whether another one may have read.
            self.is_listed = true;
            file.is_kept();
        }
    }

    /// Whether an access is kept.
    fn keeps(&mut self, kind: Kind, pieces: &Pieces, by_owners: bool) -> bool {
        let Some((begin, end)) = pieces.hull().filter(|_| pieces.is_ascending()) else { return false };
        let len = pieces.len();
        let is_short = match kind {
            Kind::Read => len < LONG_READ,
            Kind::Write if by_owners => len < LONG_MESSAGE,
            Kind::Write => len < if begin == self.behind { LONG } else { LONG_WRITE },
        };
        if kind == Kind::Write {
            self.behind = end;
        }
        is_short && self.cache.bound() > 0
    }

    /// Invalidates cached bytes of a range that was written directly. Pending writes are kept: they began
    /// during that write.
    fn forget(&mut self, pieces: &Pieces) {
        self.cache.forget_pieces(pieces);
        self.end = None;
    }

    /// Writes what waits. The next [`push`] reports a failure.
    async fn write_out(&mut self, file: &impl Keeping) {
        while let Some((pieces, data)) = self.cache.take_waiting() {
            if let Err(fault) = file.write(&pieces, &data).await {
                self.cache.lost(&pieces, fault);
            }
        }
        self.cache.bound_known();
    }

    async fn settle(&mut self, file: &impl Keeping) {
        self.write_out(file).await;
        self.cache.forget();
        self.end = None;
    }

    async fn write(&mut self, file: &impl Keeping, pieces: &Pieces, data: &[u8]) -> Result<(), Fault> {
        self.end = None;
        if !self.cache.keep(pieces, data) {
            return file.write(pieces, data).await;
        }
        if self.cache.is_full() {
            self.write_out(file).await;
        }
        Ok(())
    }

    async fn read(&mut self, file: &impl Keeping, pieces: &Pieces, memory: &Segments) -> Result<u64, Fault> {
        let mut data = Vec::with_capacity(pieces.len() as usize);
        if self.end.is_none() || !self.cache.read_known(pieces, &mut data) {
            if !self.cache.begin_read(pieces, &mut data) {
                while let Some(wanted) = self.cache.wanted(pieces) {
                    let mut bytes = vec![0; wanted.len as usize];
                    // Bytes behind the end of the file are zeros.
                    file.read(&Pieces::from_iter([wanted]), &mut bytes).await?;
                    self.cache.known(wanted, &bytes);
                }
                self.cache.read_known(pieces, &mut data);
            }
            self.end = None;
        }
        let end = match self.end {
            Some(end) => end,
            None => file.end().await?,
        };
        self.end = Some(end);
        let inside = pieces.inside(end.max(self.cache.end()));
        memory.write(0, &data[..inside as usize]);
        Ok(inside)
    }
}

/// Does an access of one process: bytes that were moved.
///
/// # Errors
/// The system refuses it, or no owner is left.
pub async fn access<K: Keeping>(
    file: &K,
    kind: Kind,
    (pieces, memory): (&Pieces, &Segments),
) -> Result<u64, K::Error> {
    let mut near = file.near().await;
    let is_kept = near.keeps(kind, pieces, file.goes_by_owners()) && !file.is_strict();
    if !is_kept {
        if near.is_listed {
            near.settle(file).await;
        }
        drop(near);
        let done = file.perform(kind, (pieces, memory)).await;
        let (is_write, knows_size) = (kind == Kind::Write, file.knows_size());
        if knows_size || is_write && file.may_keep() {
            let mut near = file.near().await;
            if knows_size {
                near.list(file);
            }
            if is_write {
                // Another thread may have read what was there before, in the meantime.
                near.forget(pieces);
            }
        }
        return done;
    }
    // Records that two processes write to the same lines of the cache are slow if each is copied at once.
    let is_tiny = kind == Kind::Write && pieces.len() < LONG_WRITE;
    if !is_tiny
        && !file.goes_by_owners()
        && !near.cache.waits_in(pieces)
        && let Some(done) = file.copy(kind, (pieces, memory))
    {
        // The process knows the length of the file until it communicates.
        near.list(file);
        if kind == Kind::Write {
            near.forget(pieces);
        }
        return Ok(done);
    }
    near.list(file);
    let done = match kind {
        Kind::Read => near.read(file, pieces, memory).await,
        Kind::Write => {
            let data = memory.contiguous().map_or_else(
                || {
                    let mut copy = Vec::new();
                    memory.append_to(&mut copy);
                    Cow::Owned(copy)
                },
                Cow::Borrowed,
            );
            near.write(file, pieces, &data).await.map(|()| pieces.len())
        }
    };
    done.map_err(|fault| file.error(fault))
}

/// Writes delayed data of this process, and forgets data that it has read. [`push`] reports failures.
pub async fn settle(file: &impl Keeping) {
    let mut near = file.near().await;
    file.unsure();
    if near.is_listed {
        near.settle(file).await;
    }
}

/// The same of a process that is about to communicate, or has communicated. What is kept from now on is told
/// again ([`Keeping::is_kept`]).
pub async fn release(file: &impl Keeping) {
    let mut near = file.near().await;
    near.is_listed = false;
    file.unsure();
    near.settle(file).await;
    file.is_kept_no_more();
}

/// Writes delayed data of this process, and reports the first failure since the last call.
///
/// # Errors
/// Data are lost.
pub async fn push(file: &impl Keeping) -> Result<(), Fault> {
    settle(file).await;
    let mut near = file.near().await;
    near.write_out(file).await;
    near.cache.reported()
}
