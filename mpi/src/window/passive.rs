//! Locks: epochs that only their origin knows of.

use super::Window;
use super::epoch::{Single, Whole};
use super::fence::mode;
use crate::error::{Class, Error, Result};
use crate::world::{World, world};
use nmad_rma::Failure;
use std::sync::atomic::{Ordering, fence};

/// `MPI_LOCK_EXCLUSIVE`
pub(crate) const EXCLUSIVE: i32 = 301;
/// `MPI_LOCK_SHARED`
pub(crate) const SHARED: i32 = 302;

/// What a thread that waits for a lock says if a rank is gone.
pub(super) const WAITING: &str = "waiting for a lock, which a rank that is gone may hold";

impl Window {
    /// `MPI_Win_lock`
    pub(crate) fn lock(&self, kind: i32, rank: i32, assertion: i32) -> Result<()> {
        let world = world()?;
        let alone = match kind {
            EXCLUSIVE => true,
            SHARED => false,
            _ => {
                let text = format_args!("MPI_Win_lock: {kind} is no type of locks");
                return Err(self.error(Class::LOCKTYPE, text));
            }
        };
        if self.target(rank)?.is_none() {
            return Ok(());
        }
        self.check_assertion("MPI_Win_lock", assertion, mode::NOCHECK)?;
        if self.epoch.of(rank).is_locked() {
            let text = format_args!("MPI_Win_lock: rank {rank} is locked already");
            return Err(self.out_of_sync(text));
        }
        match self.epoch.whole() {
            Whole::None => {}
            Whole::Fence => self.epoch.set_whole(Whole::None),
            _ => self.check_no_epoch("MPI_Win_lock")?,
        }
        if assertion & mode::NOCHECK != 0 {
            self.epoch.set(rank, Single::Unchecked);
            return Ok(());
        }
        self.take_locks(world, rank..rank + 1, alone)?;
        self.epoch.set(rank, if alone { Single::Alone } else { Single::Shared });
        Ok(())
    }

    /// `MPI_Win_lock_all`
    pub(crate) fn lock_all(&self, assertion: i32) -> Result<()> {
        let world = world()?;
        self.check_assertion("MPI_Win_lock_all", assertion, mode::NOCHECK)?;
        self.check_no_epoch("MPI_Win_lock_all")?;
        let unchecked = assertion & mode::NOCHECK != 0;
        if !unchecked {
            self.take_locks(world, 0..self.peers.len(), false)?;
        }
        self.epoch.set_unchecked(unchecked);
        self.epoch.set_whole(Whole::LockAll);
        Ok(())
    }

    /// Takes the locks of some ranks: asks all of them, then waits in their order, in which everybody waits.
    fn take_locks(&self, world: &World, ranks: std::ops::Range<i32>, alone: bool) -> Result<()> {
        let mut asked = Vec::new();
        for rank in ranks.clone().filter(|&rank| self.peer(rank).locks.is_none()) {
            asked.push((rank, self.ask(world, rank, None, |rank| rank.lock(alone))));
        }
        for rank in ranks {
            let Some(locks) = self.locks(self.peer(rank)) else { continue };
            let ticket = locks.turns().ask(alone);
            if !locks.turns().has_turn(ticket) {
                self.until_turn(world, locks, ticket)?;
            }
            if !alone {
                // The next one may share it.
                self.wake(locks, |wake| world.node().submit(wake));
            }
        }
        for (rank, request) in asked {
            let outcome = self.until(world, WAITING, || Ok(world.node().take(request)))?;
            self.meaning(world, rank, outcome.map(drop).map_err(Failure::Lost))?;
        }
        Ok(())
    }

    /// `MPI_Win_unlock`
    pub(crate) fn unlock(&self, rank: i32) -> Result<()> {
        let world = world()?;
        if self.target(rank)?.is_none() {
            return Ok(());
        }
        let single = self.epoch.of(rank);
        if !single.is_locked() {
            let text = format_args!("MPI_Win_unlock: rank {rank} is not locked");
            return Err(self.out_of_sync(text));
        }
        let ended = self.end_of_lock(world, rank..rank + 1, single);
        self.epoch.set(rank, Single::None);
        ended
    }

    /// `MPI_Win_unlock_all`
    pub(crate) fn unlock_all(&self) -> Result<()> {
        let world = world()?;
        if self.epoch.whole() != Whole::LockAll {
            let text = format_args!("MPI_Win_unlock_all: MPI_Win_lock_all was not called");
            return Err(self.out_of_sync(text));
        }
        let single = if self.epoch.is_unchecked() { Single::Unchecked } else { Single::Shared };
        let ended = self.end_of_lock(world, 0..self.peers.len(), single);
        self.epoch.set_whole(Whole::None);
        ended
    }

    /// Completes everything to some ranks, then gives back their locks: where frames carry both, with one
    /// answer for both.
    fn end_of_lock(&self, world: &World, ranks: std::ops::Range<i32>, single: Single) -> Result<()> {
        if single == Single::Unchecked {
            return self.flush(world, ranks, true);
        }
        // Frames follow each other, but nothing that the network does.
        let settled = self.settle(world, ranks.clone());
        let alone = single == Single::Alone;
        let far = |rank: &i32| self.peer(*rank).locks.is_none();
        for rank in ranks.clone().filter(far) {
            self.ask(world, rank, None, |rank| rank.unlock(alone));
        }
        let ended = settled.and(self.flush(world, ranks.clone(), true));
        fence(Ordering::SeqCst);
        for rank in ranks {
            if let Some(locks) = self.locks(self.peer(rank)) {
                locks.turns().release(alone);
                self.wake(locks, |wake| world.node().submit(wake));
            }
        }
        ended
    }

    /// `MPI_Win_flush` and its like for one rank.
    #[inline(always)]
    pub(crate) fn flush_rank(&self, call: &str, rank: i32, at_target: bool) -> Result<()> {
        if !self.peers.has(rank) {
            return self.flush_nobody(rank);
        }
        if self.epoch.whole() != Whole::LockAll && !self.epoch.of(rank).is_locked() {
            return Err(self.unlocked(call, rank));
        }
        // Direct stores become visible before any later access.
        fence(Ordering::SeqCst);
        if !self.asked.is_set(rank) {
            return Ok(());
        }
        self.flush(world()?, rank..rank + 1, at_target)
    }

    #[cold]
    fn flush_nobody(&self, rank: i32) -> Result<()> {
        self.target(rank).map(drop)
    }

    /// The same for all.
    pub(crate) fn flush_all(&self, call: &str, at_target: bool) -> Result<()> {
        if self.epoch.whole() != Whole::LockAll && self.epoch.locked() == 0 {
            return Err(self.out_of_sync(format_args!("{call}: no rank is locked")));
        }
        fence(Ordering::SeqCst);
        self.flush(world()?, 0..self.peers.len(), at_target)
    }

    #[cold]
    fn unlocked(&self, call: &str, rank: i32) -> Error {
        self.out_of_sync(format_args!("{call}: rank {rank} is not locked"))
    }

    /// `MPI_Win_sync`
    pub(crate) fn sync(&self) -> Result<()> {
        world()?;
        fence(Ordering::SeqCst);
        Ok(())
    }
}
