//! Post, start, complete, wait: epochs between the ranks of two groups. Both sides tell each other with
//! frames, also on one node, so that they wait in one way.

use super::epoch::{Single, Whole};
use super::fence::mode;
use super::{Window, lock};
use crate::error::{Class, Result};
use crate::group::Group;
use crate::world::{World, world};
use nmad_rma::frame::Kind;

impl Window {
    /// The ranks of a group.
    fn ranks(&self, call: &str, group: &Group) -> Result<Vec<i32>> {
        let members = self.on.comm.local();
        let rank = |process: u32| {
            members.rank_of(process).ok_or_else(|| {
                let text = format_args!("{call}: process {process} of the group is not in the window's");
                self.error(Class::GROUP, text)
            })
        };
        group.processes().map(rank).collect()
    }

    fn tell(&self, world: &World, rank: i32, kind: Kind) {
        if rank == self.rank() {
            return lock(&self.serving).announced(rank as usize, kind);
        }
        self.ask(world, rank, None, |rank| rank.announce(kind));
    }

    /// `MPI_Win_post`
    pub(crate) fn post(&self, group: &Group, assertion: i32) -> Result<()> {
        let world = world()?;
        self.check_assertion("MPI_Win_post", assertion, mode::NOCHECK | mode::NOSTORE | mode::NOPUT)?;
        let ranks = self.ranks("MPI_Win_post", group)?;
        let mut exposed = self.epoch.exposed();
        if exposed.is_some() {
            let text = format_args!("MPI_Win_post: it was called before, and MPI_Win_wait was not");
            return Err(self.out_of_sync(text));
        }
        if assertion & mode::NOCHECK == 0 {
            ranks.iter().for_each(|&rank| self.tell(world, rank, Kind::Post));
        }
        *exposed = Some(ranks);
        Ok(())
    }

    /// `MPI_Win_start`
    pub(crate) fn start(&self, group: &Group, assertion: i32) -> Result<()> {
        let world = world()?;
        self.check_assertion("MPI_Win_start", assertion, mode::NOCHECK)?;
        let ranks = self.ranks("MPI_Win_start", group)?;
        self.check_no_epoch("MPI_Win_start")?;
        if assertion & mode::NOCHECK == 0 {
            let mut next = 0;
            self.until(world, "MPI_Win_start, waiting for MPI_Win_post", || {
                let mut serving = lock(&self.serving);
                while let Some(&rank) = ranks.get(next) {
                    if !serving.take_post(rank as usize) {
                        return Ok(None);
                    }
                    next += 1;
                }
                Ok(Some(()))
            })?;
        }
        ranks.iter().for_each(|&rank| self.epoch.set(rank, Single::Started));
        self.epoch.set_whole(Whole::Started);
        *self.epoch.some() = ranks;
        Ok(())
    }

    /// `MPI_Win_complete`
    pub(crate) fn complete(&self) -> Result<()> {
        let world = world()?;
        if self.epoch.whole() != Whole::Started {
            let text = format_args!("MPI_Win_complete: MPI_Win_start was not called");
            return Err(self.out_of_sync(text));
        }
        let ranks = std::mem::take(&mut *self.epoch.some());
        let mut ended = Ok(());
        // This is the last chance to learn of errors at a target.
        for &rank in &ranks {
            ended = ended.and(self.flush(world, rank..rank + 1, true));
        }
        for &rank in &ranks {
            self.tell(world, rank, Kind::Complete);
            self.epoch.set(rank, Single::None);
        }
        self.epoch.set_whole(Whole::None);
        ended
    }

    /// Whether all that we have posted to have completed; takes note of it then.
    fn are_complete(&self, ranks: &[i32]) -> bool {
        lock(&self.serving).take_completes(ranks.iter().map(|&rank| rank as usize))
    }

    fn must_be_exposed(&self, call: &str) -> Result<Vec<i32>> {
        let none = || self.out_of_sync(format_args!("{call}: MPI_Win_post was not called"));
        self.epoch.exposed().clone().ok_or_else(none)
    }

    /// `MPI_Win_wait`
    pub(crate) fn wait(&self) -> Result<()> {
        let world = world()?;
        let ranks = self.must_be_exposed("MPI_Win_wait")?;
        self.until(world, "MPI_Win_wait, waiting for MPI_Win_complete", || {
            Ok(self.are_complete(&ranks).then_some(()))
        })?;
        *self.epoch.exposed() = None;
        Ok(())
    }

    /// `MPI_Win_test`
    pub(crate) fn test(&self) -> Result<bool> {
        let world = world()?;
        let ranks = self.must_be_exposed("MPI_Win_test")?;
        crate::request::wait::progress(world);
        let is_complete = self.are_complete(&ranks);
        if is_complete {
            *self.epoch.exposed() = None;
        }
        Ok(is_complete)
    }
}
