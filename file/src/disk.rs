//! An open file: positional, vectored system calls that are repeated until everything is done.

use crate::batch::{Batch, Place, SLICES, read_on};
use crate::fault::Fault;
use crate::layout::Kind;
use crate::map::Map;
use crate::memory::whole;
use crate::piece::{Piece, Pieces};
use crate::system::System;
use crate::uncached::Uncached;
use crate::windows::{Mapped, Windows};
use nmad_engine::Segments;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{self, FallocateFlags, Mode, OFlags};
use rustix::io::{self, Errno, retry_on_intr};
use std::cell::Cell;
use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of one call: Linux moves at most 2 GiB less a page.
const CALL: u64 = 1 << 30;
/// Pieces of a read that are shorter on average are read together with their gaps and copied from there: a
/// slice of a call takes longer than a copy of so many bytes.
const SHORT: u64 = 2 << 10;
/// Bytes that are read together then. They stay in the second cache of a core.
const SWEEP: u64 = 128 << 10;

thread_local! {
    /// Memory for what is read together, which is kept: new memory would have to be cleared for each access.
    static SWEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opening {
    /// It will be read.
    pub reads: bool,
    /// It will be written.
    pub writes: bool,
    /// A missing file is created.
    pub creates: bool,
    /// It must not be there.
    pub is_exclusive: bool,
    /// Permissions of a file that is created; `None`: 0666. The user's mask is applied to both.
    pub mode: Option<u32>,
}

/// An open file.
#[derive(Debug)]
pub struct Disk {
    descriptor: OwnedFd,
    path: PathBuf,
    system: System,
    /// It keeps what is written: it is no device.
    is_regular: bool,
    /// Numbers of its file system and of the file in it.
    identity: (u64, u64),
    /// It is opened to be read and, true, also to be written; none: it cannot be mapped.
    mapped: Option<bool>,
    /// Short pieces may be copied from and to mapped memory.
    may_map: AtomicBool,
    windows: Windows,
    uncached: Uncached,
}

impl Disk {
    /// Opens a file.
    ///
    /// # Errors
    /// The system refuses it, or it is no file with offsets.
    pub fn open(path: &Path, opening: Opening) -> Result<Disk, Fault> {
        let access = match (opening.reads, opening.writes) {
            (_, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (true, true) => OFlags::RDWR,
        };
        let mut flags = access | OFlags::CLOEXEC | OFlags::NOCTTY;
        flags.set(OFlags::CREATE, opening.creates);
        flags.set(OFlags::EXCL, opening.is_exclusive);
        // The system applies the user's mask.
        let mode = Mode::from_raw_mode(opening.mode.unwrap_or(0o666));
        let fault = |errno| Fault::of(errno, "open", path);
        let open = || retry_on_intr(|| fs::open(path, flags, mode));
        let descriptor = open().or_else(|errno| match errno {
            Errno::NOENT if is_asked_again(path) => open(),
            errno => Err(errno),
        });
        let descriptor = descriptor.map_err(fault)?;
        let stat = fs::fstat(&descriptor).map_err(fault)?;
        let kind = fs::FileType::from_raw_mode(stat.st_mode);
        match kind {
            fs::FileType::Directory => return Err(fault(Errno::ISDIR)),
            fs::FileType::Fifo | fs::FileType::Socket => return Err(fault(Errno::SPIPE)),
            _ => {}
        }
        let system = System::of(&fs::fstatfs(&descriptor).map_err(fault)?);
        let is_regular = kind == fs::FileType::RegularFile;
        let identity = (stat.st_dev, stat.st_ino);
        let mapped = Some(opening.writes).filter(|_| is_regular && opening.reads && system.is_mapped());
        let (may_map, windows, uncached) = Default::default();
        Ok(Disk {
            descriptor,
            path: path.into(),
            system,
            is_regular,
            identity,
            mapped,
            may_map,
            windows,
            uncached,
        })
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn delete(path: &Path) -> Result<(), Fault> {
        retry_on_intr(|| fs::unlink(path)).map_err(|errno| match errno {
            // POSIX has unlink return EPERM for a directory.
            Errno::PERM if path.is_dir() => Fault::of(Errno::ISDIR, "remove", path),
            errno => Fault::of(errno, "remove", path),
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its file system.
    pub fn system(&self) -> System {
        self.system
    }

    /// Whether both are the same file.
    pub fn is_same(&self, other: &Disk) -> bool {
        self.identity == other.identity
    }

    /// Whether it keeps what is written, so that a write may come later: it is no device.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// Sets whether short pieces may be copied from and to mapped memory: all processes that access the file
    /// are on this machine.
    pub fn set_mapped(&self, may: bool) {
        self.may_map.store(may && self.mapped.is_some(), Ordering::Relaxed);
    }

    /// Turns direct I/O on or off, for reads and for writes, if the file system has it.
    pub fn set_uncached(&self, reads: bool, writes: bool) {
        self.uncached.set(&self.descriptor, reads, writes);
    }

    /// Whether accesses of this kind go past the system's cache.
    pub fn is_uncached(&self, kind: Kind) -> bool {
        self.uncached.is_set(kind)
    }

    /// Moves the data of an access of short pieces by copies from or to mapped memory: bytes that were moved;
    /// none: it has to go by system calls.
    pub fn copy(&self, kind: Kind, data: (&Pieces, &Segments)) -> Option<u64> {
        self.windows().and_then(|windows| windows.access(self, kind, data))
    }

    /// Predicted nanoseconds of [`Disk::copy`]; none: it is not expected to do it.
    pub fn copied_ns(&self, pieces: &Pieces) -> Option<u64> {
        self.windows().and_then(|windows| windows.predicted_ns(self, pieces))
    }

    /// Notes an access that others have done for this process: one that comes back may be a copy.
    pub fn note(&self, pieces: &Pieces) {
        if let Some(windows) = self.windows() {
            windows.note(pieces);
        }
    }

    /// Whether it is known how long the file is.
    pub fn knows_size(&self) -> bool {
        self.windows().is_some_and(Windows::knows_size)
    }

    /// Forgets how long the file was: other processes may have changed that.
    pub fn unsure(&self) {
        self.windows.unsure();
    }

    pub(crate) fn windows(&self) -> Option<&Windows> {
        self.may_map.load(Ordering::Relaxed).then_some(&self.windows)
    }

    fn fault(&self, errno: Errno, what: &str) -> Fault {
        Fault::of(errno, what, &self.path)
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn size(&self) -> Result<u64, Fault> {
        let stat = fs::fstat(&self.descriptor).map_err(|errno| self.fault(errno, "ask for the size of"))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Cuts it off or lengthens it with zeros.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn set_size(&self, size: u64) -> Result<(), Fault> {
        let set = || fs::ftruncate(&self.descriptor, size);
        retry_on_intr(set).map_err(|errno| self.fault(errno, "set the size of"))
    }

    /// Has the file system keep space for this number of bytes; a file that is shorter becomes as long.
    ///
    /// # Errors
    /// The file system has too little space.
    pub fn preallocate(&self, size: u64) -> Result<(), Fault> {
        let fault = |errno| self.fault(errno, "keep space for");
        let allocate = || fs::fallocate(&self.descriptor, FallocateFlags::empty(), 0, size);
        match retry_on_intr(allocate) {
            _ if size == 0 => Ok(()),
            // A file system that cannot keep space has the size set, as without this call.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.size()? < size => self.set_size(size),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            answer => answer.map_err(fault),
        }
    }

    /// Has everything that was written reach the device.
    ///
    /// # Errors
    /// The device or the server has refused some of it.
    pub fn sync(&self) -> Result<(), Fault> {
        match retry_on_intr(|| fs::fsync(&self.descriptor)) {
            // A special file that keeps nothing.
            Err(Errno::INVAL) => Ok(()),
            answer => answer.map_err(|errno| self.fault(errno, "synchronise")),
        }
    }

    /// Forgets what this machine keeps of the file and may be older than what others have written, its size
    /// included. Follows [`Disk::sync`].
    pub fn forget(&self) {
        // Advice: without it the file system shows what it likes, as it says.
        let _ = fs::fadvise(&self.descriptor, 0, None, fs::Advice::DontNeed);
        let flags = fs::AtFlags::EMPTY_PATH | fs::AtFlags::STATX_FORCE_SYNC;
        let _ = fs::statx(&self.descriptor, c"", flags, fs::StatxFlags::BASIC_STATS);
    }

    /// Writes memory to pieces of the file, in their order.
    ///
    /// # Errors
    /// The system takes not all of it.
    pub fn write(&self, pieces: &Pieces, memory: &Segments) -> Result<(), Fault> {
        if let ([piece], Some(bytes)) = (pieces.list(), memory.contiguous()) {
            return self.write_one(piece.offset, bytes);
        }
        let mut done = 0;
        for &piece in pieces.list() {
            let mut rest = piece;
            while rest.len > 0 {
                let len = self.write_some(rest, &memory.slice(done, rest.len.min(CALL)))?;
                done += len;
                rest = Piece { offset: rest.offset + len, len: rest.len - len };
            }
        }
        Ok(())
    }

    /// Writes contiguous bytes.
    fn write_one(&self, mut offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let now = &rest[..rest.len().min(CALL as usize)];
            match retry_on_intr(|| self.pwrite(now, offset)) {
                Ok(0) => return Err(Fault::nothing_written(&self.path)),
                Ok(len) => (rest, offset) = (&rest[len..], offset + len as u64),
                Err(errno) => return Err(self.fault(errno, "write to")),
            }
        }
        Ok(())
    }

    /// Reads contiguous bytes: how many there were before the file ended.
    fn read_one(&self, offset: u64, bytes: &mut [u8]) -> Result<u64, Fault> {
        let mut done = 0;
        while done < bytes.len() {
            let most = (bytes.len() - done).min(CALL as usize);
            let now = &mut bytes[done..done + most];
            match retry_on_intr(|| self.pread(&mut *now, offset + done as u64)) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(errno) => return Err(self.fault(errno, "read")),
            }
        }
        Ok(done as u64)
    }

    fn pwrite(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let direct = self.uncached.descriptor(Kind::Write, offset, bytes);
        match direct.map(|direct| io::pwrite(direct, bytes, offset)) {
            Some(answer) if !is_refused(&answer) => answer,
            _ => io::pwrite(&self.descriptor, bytes, offset),
        }
    }

    fn pread(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let direct = self.uncached.descriptor(Kind::Read, offset, bytes);
        match direct.map(|direct| io::pread(direct, &mut *bytes, offset)) {
            Some(answer) if !is_refused(&answer) => answer,
            _ => io::pread(&self.descriptor, bytes, offset),
        }
    }

    fn write_some(&self, piece: Piece, memory: &Segments) -> Result<u64, Fault> {
        let slices: Vec<IoSlice<'_>> = memory.slices().take(SLICES).map(IoSlice::new).collect();
        // For one slice, `pwritev` takes 110 to 160 ns longer than `pwrite`, which takes 550 to 900 ns.
        let write = || match &*slices {
            [one] => self.pwrite(one, piece.offset),
            all => io::pwritev(&self.descriptor, all, piece.offset),
        };
        match retry_on_intr(write) {
            Ok(0) => Err(Fault::nothing_written(&self.path)),
            Ok(len) => Ok(len as u64),
            Err(errno) => Err(self.fault(errno, "write to")),
        }
    }

    /// Reads pieces of the file into memory, in their order: how many bytes there were before
    /// the file ended. Gaps of up to `gap` bytes between pieces are read with them and dropped.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn read(&self, pieces: &Pieces, memory: &Segments, gap: u64) -> Result<u64, Fault> {
        if let ([piece], Some(mut bytes)) = (pieces.list(), whole(memory)) {
            return self.read_one(piece.offset, &mut bytes);
        }
        let data = (pieces.list(), memory, gap);
        if pieces.len() >= SHORT * pieces.count() as u64 {
            let mut dropped = Vec::new();
            return read_on(pieces.count(), |place| self.read_some(data, (place, &mut dropped)));
        }
        let mut swept = SWEPT.take();
        let read = read_on(pieces.count(), |place| self.sweep(data, (place, &mut swept)));
        SWEPT.set(swept);
        read
    }

    /// Reads on with one call; false: the file ends here.
    fn read_some(
        &self,
        (pieces, memory, gap): (&[Piece], &Segments, u64),
        (place, dropped): (&mut Place, &mut Vec<u8>),
    ) -> Result<bool, Fault> {
        let batch = Batch::new(&pieces[place.index..], place.inside, (gap, CALL, SLICES / 2));
        dropped.resize(batch.gaps.max(dropped.len() as u64) as usize, 0);
        let offset = pieces[place.index].offset + place.inside;
        let mut slices = batch.slices(memory, place.done, dropped);
        let read = retry_on_intr(|| match &mut *slices {
            [one] => self.pread(one, offset),
            all => io::preadv(&self.descriptor, all, offset),
        });
        let len = read.map_err(|errno| self.fault(errno, "read"))? as u64;
        place.go_on(&pieces[..place.index + batch.runs.len()], offset + len);
        Ok(len > 0)
    }

    /// The same, of pieces and their gaps into memory from which the pieces are copied.
    fn sweep(
        &self,
        (pieces, memory, gap): (&[Piece], &Segments, u64),
        (place, swept): (&mut Place, &mut Vec<u8>),
    ) -> Result<bool, Fault> {
        let batch = Batch::new(&pieces[place.index..], place.inside, (gap, SWEEP, usize::MAX));
        let wanted: u64 = batch.runs.iter().map(|(before, len)| before + len).sum();
        swept.resize(swept.len().max(wanted as usize), 0);
        let offset = pieces[place.index].offset + place.inside;
        let read = retry_on_intr(|| io::pread(&self.descriptor, &mut swept[..wanted as usize], offset));
        let len = read.map_err(|errno| self.fault(errno, "read"))?;
        let mut whole = whole(memory);
        let (mut from, mut into) = (0, place.done as usize);
        for &(before, most) in &batch.runs {
            from += before as usize;
            let Some(there) = swept[..len].get(from..).filter(|rest| !rest.is_empty()) else { break };
            let there = &there[..there.len().min(most as usize)];
            match &mut whole {
                Some(bytes) => bytes[into..into + there.len()].copy_from_slice(there),
                None => _ = memory.write(into as u64, there),
            }
            (from, into) = (from + most as usize, into + most as usize);
        }
        place.go_on(&pieces[..place.index + batch.runs.len()], offset + len as u64);
        Ok(len > 0)
    }
}

impl Mapped for Disk {
    fn size_now(&self) -> Option<u64> {
        self.size().ok()
    }

    /// Writes a byte at the end that the caller writes anyway: the file gets no shorter if another process
    /// lengthens it at the same time.
    fn lengthen(&self, end: u64) -> bool {
        end > 0 && self.write_one(end - 1, &[0]).is_ok()
    }

    fn map(&self, offset: u64) -> Option<Map> {
        Map::new(self.descriptor.as_fd(), offset, self.mapped?)
    }
}

/// Whether the system has no direct I/O for this memory or this part of the file.
fn is_refused(answer: &io::Result<usize>) -> bool {
    matches!(answer, Err(Errno::INVAL | Errno::FAULT | Errno::OPNOTSUPP))
}

/// Has the system ask the server of a network file system what the folder of a file contains: a client of NFS
/// keeps for up to a minute that there is no such name, which another machine may have created. False: the
/// system does not do that.
fn is_asked_again(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::statx(fs::CWD, folder, fs::AtFlags::STATX_FORCE_SYNC, fs::StatxFlags::BASIC_STATS).is_ok()
}

#[cfg(test)]
mod tests;
