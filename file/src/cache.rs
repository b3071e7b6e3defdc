//! The part of a file that one process keeps in memory: data to be written later, and data that were read.
//!
//! Written data stay in memory until they exceed a bound, or until [`Cache::push`]. Then the cache writes
//! them in ascending order and in the fewest pieces: adjacent records of different ranks are one piece.
//! Reads fetch whole pages, and read ahead if the program reads forward.

use crate::backing::Backing;
use crate::fault::Fault;
use crate::page::PAGE;
use crate::piece::{Piece, Pieces};
use crate::store::Store;

/// Bytes that are read at once, at most, if a program reads forward.
const AHEAD: u64 = 128 << 10;
/// Bytes that are read behind the first read that goes forward; each next read doubles them.
const AHEAD_FIRST: u64 = 16 << 10;
/// Bytes of one write of data that waited.
const BATCH: u64 = 4 << 20;

/// Pages of a file.
pub struct Cache {
    store: Store,
    /// Bytes that may wait to be written.
    bound: u64,
    /// Bytes of a region. A fetch stays inside one region.
    unit: u64,
    /// Reads of at least this many bytes bypass the pages.
    long: u64,
    /// Nothing may be kept, although the bound allows it.
    is_through: bool,
    /// The first failure of a delayed write that was not reported yet. Until then no write is delayed.
    delayed: Option<Fault>,
    /// The byte behind the last read, and how much is read from there on if the next one follows.
    forward: u64,
    ahead: u64,
}

impl Cache {
    /// A cache that keeps up to `bound` bytes of data that wait, in regions of `unit` bytes. Reads of at
    /// least `long` bytes go past it.
    pub fn new(unit: u64, bound: u64, long: u64) -> Cache {
        let (unit, store) = (unit.max(1), Store::default());
        Cache { store, bound, unit, long, is_through: false, delayed: None, forward: u64::MAX, ahead: 0 }
    }

    /// Sets the bytes of a region and of data that may wait. Everything was pushed and forgotten before.
    pub fn set(&mut self, unit: u64, bound: u64) {
        (self.unit, self.bound) = (unit.max(1), bound);
    }

    /// Sets whether data may be kept.
    pub(crate) fn set_kept(&mut self, is_kept: bool) {
        self.is_through = !is_kept;
    }

    /// Bytes of data that may wait.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// The byte behind the last one that waits.
    pub fn end(&self) -> u64 {
        self.store.end()
    }

    /// Whether there is room for data, so that they wait and nothing is written.
    pub fn has_room(&self, pieces: &Pieces) -> bool {
        let count = pieces.count() as u64;
        let hull = pieces.hull().map_or(0, |(begin, end)| end - begin);
        // A piece may begin and end inside a page.
        let pages = (hull / PAGE + 2).min(pieces.len() / PAGE + 2 * count);
        self.delayed.is_none() && self.store.unwritten() + pages * PAGE <= self.bound
    }

    /// Takes data to be written.
    ///
    /// # Errors
    /// Nothing is delayed, and the file system refuses them.
    pub fn write(&mut self, backing: &impl Backing, pieces: &Pieces, data: &[u8]) -> Result<(), Fault> {
        if !self.keep(pieces, data) {
            return backing.write(pieces, data);
        }
        if self.is_full() {
            // These data come from many calls: the next `push` reports the failure.
            self.write_out(backing);
        }
        Ok(())
    }

    /// Takes data that are written later; false: nothing is delayed, and the caller has to write them.
    pub(crate) fn keep(&mut self, pieces: &Pieces, data: &[u8]) -> bool {
        if self.bound == 0 || self.is_through || self.delayed.is_some() {
            self.drop_pieces(pieces);
            return false;
        }
        each(pieces, data, |piece, data| self.store.write(piece.offset, data));
        true
    }

    /// Whether bytes of pieces wait to be written.
    pub(crate) fn waits_in(&self, pieces: &Pieces) -> bool {
        self.store.unwritten() > 0 && pieces.list().iter().any(|piece| self.store.waits_in(*piece))
    }

    /// Whether more waits than may.
    pub(crate) fn is_full(&self) -> bool {
        self.store.unwritten() > self.bound
    }

    /// Forgets what is known of pieces, which the caller writes itself.
    pub fn drop_pieces(&mut self, pieces: &Pieces) {
        if !self.store.is_empty() {
            pieces.list().iter().for_each(|piece| self.store.drop_piece(*piece));
        }
    }

    /// Forgets what is known of pieces but for data that wait: a thread has written there, and what waits is
    /// of other threads, which came meanwhile.
    pub(crate) fn forget_pieces(&mut self, pieces: &Pieces) {
        if !self.store.is_empty() {
            pieces.list().iter().for_each(|piece| self.store.forget_piece(*piece));
        }
    }

    /// Appends the bytes of pieces if all are known; or nothing.
    pub fn read_known(&self, pieces: &Pieces, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        let is_known = pieces.list().iter().all(|piece| self.store.read(*piece, out));
        if !is_known {
            out.truncate(before);
        }
        is_known
    }

    /// Appends the bytes of pieces of one region; those behind the end of the file are 0.
    ///
    /// # Errors
    /// The file system refuses it.
    pub fn read(&mut self, backing: &impl Backing, pieces: &Pieces, out: &mut Vec<u8>) -> Result<(), Fault> {
        if pieces.is_empty() {
            return Ok(());
        }
        if self.bound == 0 || self.is_through || pieces.len() >= self.long {
            self.write_out(backing);
            out.resize(pieces.len() as usize, 0);
            return backing.read(pieces, out).map(drop);
        }
        if self.begin_read(pieces, out) {
            return Ok(());
        }
        // The pieces of an owner are in one region, so that one fetch is all that each of them needs.
        for _ in 0..=pieces.count() {
            let Some(wanted) = self.wanted(pieces) else { break };
            let mut data = vec![0; wanted.len as usize];
            // Bytes behind the end of the file are zeros.
            backing.read(&Pieces::from_iter([wanted]), &mut data)?;
            self.known(wanted, &data);
        }
        self.read_known(pieces, out);
        Ok(())
    }

    /// Appends the bytes of pieces if all are known. Otherwise [`Cache::wanted`] says what is missing.
    pub(crate) fn begin_read(&mut self, pieces: &Pieces, out: &mut Vec<u8>) -> bool {
        let Some((begin, end)) = pieces.hull() else { return true };
        let is_forward = begin >= self.forward && begin - self.forward < AHEAD;
        self.forward = end;
        if self.read_known(pieces, out) {
            return true;
        }
        self.ahead = if is_forward { (2 * self.ahead).clamp(AHEAD_FIRST, AHEAD) } else { 0 };
        self.bound_known();
        false
    }

    /// What has to be fetched next for a read, with what follows if the reads go forward; none: all is known.
    pub(crate) fn wanted(&self, pieces: &Pieces) -> Option<Piece> {
        let (begin, end) = pieces.hull()?;
        let fetched = |piece: Piece| {
            let missing = self.store.missing(piece)?;
            // Other regions have other owners.
            let first = piece.offset / self.unit * self.unit;
            let begin = missing.offset.max(first);
            let end = (missing.end() + self.ahead).min(first.saturating_add(self.unit));
            Some(Piece { offset: begin, len: end - begin })
        };
        // Pieces close to each other are read with what is between them.
        match end - begin <= self.long {
            true => fetched(Piece { offset: begin, len: end - begin }),
            false => pieces.list().iter().find_map(|piece| fetched(*piece)),
        }
    }

    /// Takes bytes that were fetched.
    pub(crate) fn known(&mut self, piece: Piece, data: &[u8]) {
        self.store.fill(piece.offset, data);
    }

    /// Writes all delayed data; the next [`Cache::push`] reports a failure.
    pub fn write_out(&mut self, backing: &impl Backing) {
        while let Some((pieces, data)) = self.take_waiting() {
            if let Err(fault) = backing.write(&pieces, &data) {
                self.lost(&pieces, fault);
            }
        }
        self.bound_known();
    }

    /// Takes out delayed data, which the caller writes; none: there are no more.
    pub(crate) fn take_waiting(&mut self) -> Option<(Pieces, Vec<u8>)> {
        self.store.take_unwritten(BATCH)
    }

    /// Delayed data could not be written.
    pub(crate) fn lost(&mut self, pieces: &Pieces, mut fault: Fault) {
        fault.text += &format!(
            "; data that were to be written later, {} B in {} pieces from byte {} on, are lost",
            pieces.len(),
            pieces.count(),
            pieces.hull().map_or(0, |(begin, _)| begin)
        );
        self.store.forget();
        self.delayed.get_or_insert(fault);
    }

    /// Forgets what was read or written before, if it is more than what may wait: a program that only writes
    /// never reads it.
    pub(crate) fn bound_known(&mut self) {
        if self.store.len() > self.store.unwritten() + self.bound.max(2 * self.long) {
            self.store.forget();
        }
    }

    /// Whether nothing is in memory and no failure has to be reported.
    pub fn is_clean(&self) -> bool {
        self.store.is_empty() && self.delayed.is_none()
    }

    /// Forgets what was read.
    pub fn forget(&mut self) {
        self.store.forget();
        (self.forward, self.ahead) = (u64::MAX, 0);
    }

    /// Writes all delayed data, and reports the first failure since the last call.
    ///
    /// # Errors
    /// Data are lost.
    pub fn push(&mut self, backing: &impl Backing) -> Result<(), Fault> {
        self.write_out(backing);
        self.reported()
    }

    /// The first failure of a delayed write since the last call.
    ///
    /// # Errors
    /// There was one.
    pub(crate) fn reported(&mut self) -> Result<(), Fault> {
        self.delayed.take().map_or(Ok(()), Err)
    }

    /// Writes all delayed data, reports failures, and forgets data that were read: other processes may
    /// change the file from now on.
    ///
    /// # Errors
    /// Data are lost.
    pub fn hand_over(&mut self, backing: &impl Backing) -> Result<(), Fault> {
        let pushed = self.push(backing);
        self.forget();
        pushed
    }
}

/// Calls `work` with each piece and its data.
pub(crate) fn each(pieces: &Pieces, data: &[u8], mut work: impl FnMut(Piece, &[u8])) {
    let mut rest = data;
    for &piece in pieces.list() {
        let (now, behind) = rest.split_at(rest.len().min(piece.len as usize));
        work(piece, now);
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that takes everything.
    struct Sink;

    impl Backing for Sink {
        fn write(&self, _: &Pieces, _: &[u8]) -> Result<(), Fault> {
            Ok(())
        }

        fn read(&self, pieces: &Pieces, _: &mut [u8]) -> Result<u64, Fault> {
            Ok(pieces.len())
        }

        fn size(&self) -> Result<u64, Fault> {
            Ok(0)
        }
    }

    #[test]
    fn a_program_that_only_writes_does_not_fill_the_memory() {
        let bound = 16 * PAGE;
        let mut cache = Cache::new(u64::MAX, bound, PAGE);
        for number in 0..1000 {
            let record = Pieces::from_iter([Piece { offset: number * 1000, len: 1000 }]);
            cache.write(&Sink, &record, &[1; 1000]).expect("it takes everything");
            assert!(cache.store.len() <= 2 * bound + PAGE, "{} B after {number} records", cache.store.len());
        }
    }
}
