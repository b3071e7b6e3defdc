//! What hosts that die take with them: what they have written and nobody has synchronised since, and what
//! others have written to regions that they owned. A call that all make ends with an error on hosts that have
//! the report, and then orders nothing. All else is there, and a host that misses something was told that an
//! owner is gone.

use super::{Book, Done, Objection, Together, What, Writer};
use std::collections::BTreeSet;

impl Book {
    /// A host was told that these owners are gone.
    pub(super) fn tell(&mut self, host: usize, gone: BTreeSet<usize>) -> Result<(), Objection> {
        if let Some(owner) = gone.iter().find(|owner| !self.died.contains_key(owner)) {
            return Err(format!("the host is told that h{owner} is gone, which it is not"));
        }
        self.told.insert(host, gone);
        Ok(())
    }

    /// Whether no host may own a region any more.
    pub(super) fn no_owner_lives(&self) -> bool {
        let is_dead = |owner: &i32| self.died.contains_key(&(*owner as usize));
        [false, true].into_iter().any(|mode| self.stage.layout(mode).regions.owners().iter().all(is_dead))
    }

    /// Whether the byte of a write may have been in the memory of a host when that died, and nowhere else.
    pub(super) fn may_be_lost(&self, done: &Done, at: u64) -> bool {
        if self.died.is_empty() || self.is_synchronised(done) {
            return false;
        }
        self.died.contains_key(&done.host) || !self.lost_owners(done, at).is_empty()
    }

    /// The owners that may have had the byte of a write, and have died. None: it is where it was.
    fn lost_owners(&self, done: &Done, at: u64) -> BTreeSet<usize> {
        let is_torn =
            self.together.values().any(|step| matches!(step.what, What::Atomic(_)) && step.is_torn());
        // Hosts that have not changed the mode with the others have other owners, and two of them may write
        // to one page of a file system that is not coherent.
        if is_torn && !self.stage.is_coherent {
            return self.died.keys().copied().collect();
        }
        let own = done.mode.is_some();
        let modes = if is_torn { vec![own, !own] } else { vec![own] };
        let owner = |mode: bool| {
            let layout = self.stage.layout(mode);
            let owner = layout.regions.owner(layout.regions.of(at)) as usize;
            (layout.by_owners || self.stage.may_change()).then_some(owner)
        };
        modes.into_iter().filter_map(owner).filter(|owner| self.died.contains_key(owner)).collect()
    }

    /// Whether the file was synchronised behind a write, as a host that lives knows.
    fn is_synchronised(&self, done: &Done) -> bool {
        let is_done = |step: &Together| {
            let mut ends = step.end.iter().zip(&step.lost);
            ends.any(|(end, is_lost)| end.is_some() && !is_lost)
        };
        self.together.values().any(|step| {
            !matches!(step.what, What::Barrier)
                && !step.has_failed
                && Book::is_before(done, step)
                && is_done(step)
        })
    }

    /// A read misses a write that was before: the host must know why.
    pub(super) fn judge_loss(&self, read: &Done, writer: Writer, at: u64) -> Result<(), Objection> {
        let Writer::Write(place) = writer else { return Ok(()) };
        let done = &self.accesses[place];
        let owners = self.lost_owners(done, at);
        let told = self.told.get(&read.host);
        if self.died.contains_key(&done.host) || told.is_some_and(|told| !told.is_disjoint(&owners)) {
            return Ok(());
        }
        Err(format!("byte {at} of {} is lost, and its host was not told why", self.name(Some(writer))))
    }

    /// Whether a write may wait in the memory of its host at the end.
    pub(super) fn may_wait(&self, writer: Writer) -> bool {
        let Writer::Write(place) = writer else { return false };
        let done = &self.accesses[place];
        !self.together.values().any(|step| Book::is_before(done, step) && step.end[done.host].is_some())
    }
}
