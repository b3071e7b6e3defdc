//! The owner of regions of a file: what processes ask of it is done in the order in which it comes, each as a
//! whole. No other process calls the file system for these regions meanwhile, so that nothing has to be
//! locked and what the owner keeps in memory ([`Cache`]) is what the file has.

use crate::backing::Backing;
use crate::cache::Cache;
use crate::fault::Fault;
use crate::request::{Answer, Ask, Request};
use std::collections::{BTreeSet, VecDeque};

/// Reads of at least this many bytes go past the pages of an owner: copying them there would cost as much as
/// the call.
const LONG: u64 = 256 << 10;

/// The state of an owner. `T` is what the caller needs to send an answer.
pub struct Owner<T> {
    /// The data of its regions in memory.
    pub cache: Cache,
    /// The access that holds the owner ([`Ask::Hold`]), and its process; requests of other accesses wait.
    held: Option<(usize, u32)>,
    waiting: VecDeque<(usize, T, Request)>,
    /// Processes that have died.
    lost: BTreeSet<usize>,
}

impl<T> Owner<T> {
    /// An owner of regions of `unit` bytes that keeps up to `bound` bytes of data.
    pub fn new(unit: u64, bound: u64) -> Owner<T> {
        Owner {
            cache: Cache::new(unit, bound, LONG),
            held: None,
            waiting: VecDeque::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Whether a request can be served without a call of the file system, and at once.
    pub fn has_at_hand(&self, from: usize, request: &Request) -> bool {
        let is_free =
            self.held.is_none_or(|holder| holder == (from, request.part.access)) && self.waiting.is_empty();
        is_free
            && match &request.ask {
                Ask::Write(pieces, _) => self.cache.has_room(pieces),
                Ask::Hold => true,
                // The end of the file is asked of the system.
                Ask::Read(_) | Ask::End => false,
            }
    }

    /// Takes a request of a process. Returns the answers that are ready, also to earlier requests. A request
    /// of a process that has died may come later than its death is known: it is ignored, since the process
    /// would hold the owner forever.
    pub fn ask(
        &mut self,
        backing: &impl Backing,
        (from, token): (usize, T),
        request: Request,
    ) -> Vec<(T, Answer)> {
        if self.lost.contains(&from) {
            return Vec::new();
        }
        self.waiting.push_back((from, token, request));
        self.serve(backing)
    }

    /// A process has died: drops its requests, and serves the requests that waited for it.
    pub fn lost(&mut self, backing: &impl Backing, from: usize) -> Vec<(T, Answer)> {
        self.lost.insert(from);
        self.waiting.retain(|(process, ..)| *process != from);
        if self.held.is_some_and(|(process, _)| process == from) {
            self.held = None;
        }
        self.serve(backing)
    }

    /// Does what can be done now, in the order in which it came.
    fn serve(&mut self, backing: &impl Backing) -> Vec<(T, Answer)> {
        let mut answers = Vec::new();
        while let Some(next) = self.next() {
            let Some((from, token, request)) = self.waiting.remove(next) else { break };
            if request.ask == Ask::Hold {
                self.held = Some((from, request.part.access));
            }
            let answer = self.done(backing, request.ask);
            if request.part.releases {
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
            Some(holder) => {
                let is_of_it =
                    |(from, _, request): &(usize, T, Request)| holder == (*from, request.part.access);
                self.waiting.iter().position(is_of_it)
            }
        }
    }

    fn done(&mut self, backing: &impl Backing, ask: Ask) -> Result<Answer, Fault> {
        let mut data = Vec::new();
        match ask {
            Ask::Write(pieces, data) => {
                self.cache.write(backing, &pieces, &data)?;
                // A writer does not need to know where the file ends.
                return Ok(Answer::Done { end: 0, data: Vec::new() });
            }
            Ask::Hold => return Ok(Answer::Done { end: 0, data }),
            Ask::Read(pieces) => self.cache.read(backing, &pieces, &mut data)?,
            Ask::End => {}
        }
        Ok(Answer::Done { end: backing.size()?.max(self.cache.end()), data })
    }
}

#[cfg(test)]
mod tests;
