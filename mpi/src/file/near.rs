//! Short records of one rank stay in its own memory: several are written by one system call or one message,
//! and several are read by one.
//!
//! The standard lets other ranks see what was written after MPI_File_sync only. Programs rely on more: that a
//! write is seen by a rank that has received a message which was sent later. So every call that communicates
//! writes delayed data and forgets data that were read ([`release`]), when it begins and when it ends. A
//! read that follows a message then finds all writes that preceded the message. Each costs a call one look
//! at a flag, which traces use as well.

use super::route::Route;
use super::{File, Kind, error_of, lock};
use crate::api::observe_for_files as observe;
use crate::error::Result;
use newmadeleine::Segments;
use nmad_file::{Backing, Cache, Pieces};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

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

/// Files of which something is in memory.
static LISTED: Mutex<Vec<Arc<File>>> = Mutex::new(Vec::new());

thread_local! {
    /// This thread is in an access, whose messages may call functions of the program.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Short records of a file in the memory of one rank.
pub(super) struct Near {
    cache: Cache,
    /// Where the file ended at the last read; `None`: unknown.
    end: Option<u64>,
    /// The byte behind the last write.
    behind: u64,
    /// It is in the list.
    is_listed: bool,
}

impl Near {
    /// One that keeps up to `bound` bytes of data that wait.
    pub(super) fn new(bound: u64) -> Near {
        Near {
            cache: Cache::new(u64::MAX, bound.min(BOUND), LONG),
            end: None,
            behind: u64::MAX,
            is_listed: false,
        }
    }

    pub(super) fn set(&mut self, bound: u64) {
        self.cache.set(u64::MAX, bound.min(BOUND));
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

    /// Writes what waits and forgets what was read.
    fn settle(&mut self, file: &Arc<File>) {
        IS_INSIDE.set(true);
        self.cache.write_out(&Route(file));
        IS_INSIDE.set(false);
        self.cache.forget();
        self.end = None;
    }

    /// Forgets what is known of pieces, which were written past it.
    fn forget(&mut self, pieces: &Pieces) {
        self.cache.drop_pieces(pieces);
        self.end = None;
    }

    fn read(&mut self, file: &Arc<File>, pieces: &Pieces, memory: &Segments) -> Result<u64> {
        let mut data = Vec::with_capacity(pieces.len() as usize);
        if self.end.is_none() || !self.cache.read_known(pieces, &mut data) {
            self.cache.read(&Route(file), pieces, &mut data).map_err(error_of)?;
            self.end = None;
        }
        let end = match self.end {
            Some(end) => end,
            None => Route(file).size().map_err(error_of)?,
        };
        self.end = Some(end);
        let inside = pieces.inside(end.max(self.cache.end()));
        memory.write(0, &data[..inside as usize]);
        Ok(inside)
    }
}

impl File {
    /// Moves the data of an access of one rank: bytes that were moved.
    ///
    /// # Errors
    /// The system refuses it, or no owner is left.
    pub(super) fn access(self: &Arc<File>, kind: Kind, data: (&Pieces, &Segments)) -> Result<u64> {
        let (pieces, memory) = data;
        let mut near = lock(&self.near);
        if !near.keeps(kind, pieces, self.goes_by_owners())
            || self.is_atomic()
            || self.is_twice.load(Ordering::Relaxed)
        {
            drop(near);
            self.settle();
            let done = self.move_data(kind, data);
            if kind == Kind::Write {
                // Another thread may have read what was there before, in the meantime.
                lock(&self.near).forget(pieces);
            }
            return done;
        }
        let was_inside = IS_INSIDE.replace(true);
        let done = match kind {
            Kind::Read => near.read(self, pieces, memory),
            Kind::Write => {
                let mut copy = Vec::new();
                let data = memory.contiguous().unwrap_or_else(|| {
                    memory.append_to(&mut copy);
                    &copy
                });
                near.end = None;
                near.cache.write(&Route(self), pieces, data).map(|()| pieces.len()).map_err(error_of)
            }
        };
        if !near.is_listed && !near.cache.is_clean() {
            near.is_listed = true;
            lock(&LISTED).push(self.clone());
            observe(true);
        }
        IS_INSIDE.set(was_inside);
        done
    }

    /// Writes delayed data of this rank, and forgets data that it has read. [`File::push_near`] reports
    /// failures.
    pub(super) fn settle(self: &Arc<File>) {
        if !IS_INSIDE.get() {
            let mut near = lock(&self.near);
            if near.is_listed {
                near.settle(self);
            }
        }
    }

    /// Writes delayed data of this rank, and reports the first failure since the last call.
    ///
    /// # Errors
    /// Data are lost.
    pub(super) fn push_near(self: &Arc<File>) -> Result<()> {
        self.settle();
        lock(&self.near).cache.push(&Route(self)).map_err(error_of)
    }
}

/// Writes delayed data of all files of this process, and forgets data that it has read: the process is
/// about to communicate, or has communicated.
#[cold]
pub(crate) fn release() {
    if IS_INSIDE.get() {
        return;
    }
    // From here on a file that gets something to keep is put on the list again.
    observe(false);
    let files = std::mem::take(&mut *lock(&LISTED));
    for file in files {
        let mut near = lock(&file.near);
        near.is_listed = false;
        near.settle(&file);
    }
}
