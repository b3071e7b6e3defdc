//! The owner of regions of a file: what processes ask of it is done in the order in which it comes, each as a
//! whole. No other process calls the file system for these regions meanwhile, so that nothing has to be locked
//! and what the owner keeps in memory is what the file has.
//!
//! Data that are written stay in memory until they are as many as the bound, or until [`Owner::push`]. Then
//! they are written in ascending order, in as few pieces as there can be: records of several processes that
//! touch go out together. Reads fetch whole pages, and what follows them if they go forward.

use crate::backing::Backing;
use crate::fault::Fault;
use crate::page::PAGE;
use crate::piece::{Piece, Pieces};
use crate::request::{Answer, Ask, Request};
use crate::store::Store;
use std::collections::VecDeque;

/// Bytes that are read at once if a program reads forward. With a quarter or four times as many, records of
/// 100 B read by two ranks through an owner on tmpfs take 1.2 and 1.0 times as long.
const AHEAD: u64 = 128 << 10;
/// Reads of at least this many bytes go past the pages: copying them there would cost as much as the call.
const LONG: u64 = 256 << 10;
/// Bytes of one write of data that waited.
const BATCH: u64 = 4 << 20;

/// The state of an owner. `T` is what the caller needs to send an answer.
pub struct Owner<T> {
    store: Store,
    /// Bytes that may wait to be written.
    bound: u64,
    /// Bytes of a region.
    unit: u64,
    /// The process that others wait for.
    held: Option<usize>,
    waiting: VecDeque<(usize, T, Request)>,
    /// The first failure of a delayed write that nobody was told of. Until it is told nothing is delayed.
    delayed: Option<Fault>,
    /// The byte behind the last read.
    forward: u64,
}

impl<T> Owner<T> {
    /// An owner of regions of `unit` bytes that keeps up to `bound` bytes of data.
    pub fn new(unit: u64, bound: u64) -> Owner<T> {
        Owner {
            store: Store::default(),
            bound,
            unit: unit.max(1),
            held: None,
            waiting: VecDeque::new(),
            delayed: None,
            forward: 0,
        }
    }

    /// Sets the bytes of a region and of data that may wait. Everything was pushed and forgotten before.
    pub fn set(&mut self, unit: u64, bound: u64) {
        (self.unit, self.bound) = (unit.max(1), bound);
    }

    /// Whether a request can be served without a call of the file system, and at once.
    pub fn has_at_hand(&self, from: usize, request: &Request) -> bool {
        let is_free = self.held.is_none_or(|holder| holder == from) && self.waiting.is_empty();
        let is_short = match &request.ask {
            Ask::Write(_, data) => {
                self.delayed.is_none() && self.store.unwritten() + data.len() as u64 + 2 * PAGE <= self.bound
            }
            Ask::Hold => true,
            // The end of the file is asked of the system.
            Ask::Read(_) | Ask::End => false,
        };
        is_free && is_short
    }

    /// Takes a request of a process, and gives the answers that there are now, also to requests that came
    /// before.
    pub fn ask(
        &mut self,
        backing: &impl Backing,
        (from, token): (usize, T),
        request: Request,
    ) -> Vec<(T, Answer)> {
        self.waiting.push_back((from, token, request));
        self.serve(backing)
    }

    /// A process is gone: what it has asked is dropped, and nobody waits for it any more.
    pub fn lost(&mut self, backing: &impl Backing, from: usize) -> Vec<(T, Answer)> {
        self.waiting.retain(|(process, ..)| *process != from);
        if self.held == Some(from) {
            self.held = None;
        }
        self.serve(backing)
    }

    /// Does what can be done now, in the order in which it came.
    fn serve(&mut self, backing: &impl Backing) -> Vec<(T, Answer)> {
        let mut answers = Vec::new();
        while let Some(next) = self.next() {
            let Some((from, token, request)) = self.waiting.remove(next) else { break };
            let answer = self.done(backing, request.ask, from);
            if request.releases {
                self.held = None;
            }
            answers.push((token, answer.unwrap_or_else(Answer::Failed)));
        }
        answers
    }

    /// The place of the next request that can be served.
    fn next(&self) -> Option<usize> {
        match self.held {
            None => (!self.waiting.is_empty()).then_some(0),
            Some(holder) => self.waiting.iter().position(|(from, ..)| *from == holder),
        }
    }

    fn done(&mut self, backing: &impl Backing, ask: Ask, from: usize) -> Result<Answer, Fault> {
        let mut data = Vec::new();
        match ask {
            Ask::Write(pieces, data) => {
                self.write(backing, &pieces, &data)?;
                // A writer does not need to know where the file ends.
                return Ok(Answer::Done { end: 0, data: Vec::new() });
            }
            Ask::Hold => {
                self.held = Some(from);
                return Ok(Answer::Done { end: 0, data });
            }
            Ask::Read(pieces) => self.read(backing, &pieces, &mut data)?,
            Ask::End => {}
        }
        Ok(Answer::Done { end: backing.size()?.max(self.store.end()), data })
    }

    fn write(&mut self, backing: &impl Backing, pieces: &Pieces, data: &[u8]) -> Result<(), Fault> {
        if self.bound == 0 || self.delayed.is_some() {
            return self.write_through(backing, pieces, data);
        }
        each(pieces, data, |piece, data| self.store.write(piece.offset, data));
        if self.store.unwritten() > self.bound {
            // The data of this request are those of many: the failure is told with all others.
            self.write_out(backing);
        }
        Ok(())
    }

    /// Writes data at once, and forgets what is older.
    ///
    /// # Errors
    /// The file system refuses it.
    pub fn write_through(
        &mut self,
        backing: &impl Backing,
        pieces: &Pieces,
        data: &[u8],
    ) -> Result<(), Fault> {
        self.drop_pieces(pieces);
        backing.write(pieces, data)
    }

    /// Forgets what is known of pieces, which the caller writes itself.
    pub fn drop_pieces(&mut self, pieces: &Pieces) {
        if !self.store.is_empty() {
            pieces.list().iter().for_each(|piece| self.store.drop_piece(*piece));
        }
    }

    /// Appends the bytes of pieces; those behind the end of the file are 0.
    fn read(&mut self, backing: &impl Backing, pieces: &Pieces, out: &mut Vec<u8>) -> Result<(), Fault> {
        let Some((begin, end)) = pieces.hull() else { return Ok(()) };
        if self.bound == 0 || pieces.len() >= LONG {
            self.write_out(backing);
            out.resize(pieces.len() as usize, 0);
            return backing.read(pieces, out).map(drop);
        }
        // Pieces close to each other are read with what is between them.
        let hull = Piece { offset: begin, len: end - begin };
        let is_forward = (self.forward..self.forward + AHEAD).contains(&begin);
        self.forward = end;
        match end - begin <= LONG {
            true => self.fetch(backing, hull, is_forward)?,
            false => pieces.list().iter().try_for_each(|piece| self.fetch(backing, *piece, false))?,
        }
        for piece in pieces.list() {
            // What is fetched is known.
            self.store.read(*piece, out);
        }
        if self.store.len() > self.store.unwritten() + self.bound.max(2 * LONG) {
            self.store.forget();
        }
        Ok(())
    }

    /// Reads what is missing of a piece, and what follows.
    fn fetch(&mut self, backing: &impl Backing, piece: Piece, is_forward: bool) -> Result<(), Fault> {
        let Some(missing) = self.store.missing(piece) else { return Ok(()) };
        let ahead = if is_forward { AHEAD } else { 0 };
        // Other regions have other owners.
        let first = piece.offset / self.unit * self.unit;
        let begin = missing.offset.max(first);
        let end = (missing.end() + ahead).min(first.saturating_add(self.unit));
        let mut data = vec![0; (end - begin) as usize];
        let wanted = Pieces::from_iter([Piece { offset: begin, len: end - begin }]);
        // Behind the end of the file there are zeros, until somebody writes there: that asks the owner.
        backing.read(&wanted, &mut data)?;
        self.store.fill(begin, &data);
        Ok(())
    }

    /// Writes everything that waits; a failure is told by the next [`Owner::push`].
    pub fn write_out(&mut self, backing: &impl Backing) {
        while let Some((pieces, data)) = self.store.take_unwritten(BATCH) {
            if let Err(mut fault) = backing.write(&pieces, &data) {
                fault.text += &format!(
                    "; data that were to be written later, {} B in {} pieces from byte {} on, are lost",
                    pieces.len(),
                    pieces.count(),
                    pieces.hull().map_or(0, |(begin, _)| begin)
                );
                self.store.forget();
                self.delayed.get_or_insert(fault);
            }
        }
    }

    /// Whether nothing waits and no failure is to be told.
    pub fn is_clean(&self) -> bool {
        self.store.unwritten() == 0 && self.delayed.is_none()
    }

    /// Writes everything that waits, and tells what has gone wrong since the last call.
    ///
    /// # Errors
    /// Data are lost.
    pub fn push(&mut self, backing: &impl Backing) -> Result<(), Fault> {
        self.write_out(backing);
        self.delayed.take().map_or(Ok(()), Err)
    }

    /// As [`Owner::push`], and forgets what was read: others may change the file.
    ///
    /// # Errors
    /// Data are lost.
    pub fn hand_over(&mut self, backing: &impl Backing) -> Result<(), Fault> {
        let pushed = self.push(backing);
        self.store.forget();
        pushed
    }
}

/// Calls `work` with each piece and its data.
pub fn each(pieces: &Pieces, data: &[u8], mut work: impl FnMut(Piece, &[u8])) {
    let mut rest = data;
    for &piece in pieces.list() {
        let (now, behind) = rest.split_at(rest.len().min(piece.len as usize));
        work(piece, now);
        rest = behind;
    }
}

#[cfg(test)]
mod tests;
