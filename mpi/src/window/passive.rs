//! Locks: epochs that only their origin knows of.

use super::Window;
use super::epoch::{Single, Whole};
use super::fence::mode;
use super::locks::Locks;
use crate::error::{Class, Error, Result};
use crate::world::{World, world};
use nmad_rma::locks::Kind;
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

/// `MPI_LOCK_EXCLUSIVE`
pub(crate) const EXCLUSIVE: i32 = 301;
/// `MPI_LOCK_SHARED`
pub(crate) const SHARED: i32 = 302;

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
        match self.locks(self.peer(rank)) {
            Some(locks) => self.take_lock(world, locks, alone)?,
            None => {
                let kind = if alone { Kind::Alone } else { Kind::Shared };
                self.ask(world, rank, None, |to| to.lock(kind));
                self.await_locks(world, std::iter::once(rank))?;
            }
        }
        self.epoch.set(rank, if alone { Single::Alone } else { Single::Shared });
        Ok(())
    }

    /// `MPI_Win_lock_all`: takes the locks of our node. Ranks of others are asked when they are accessed.
    pub(crate) fn lock_all(&self, assertion: i32) -> Result<()> {
        let world = world()?;
        self.check_assertion("MPI_Win_lock_all", assertion, mode::NOCHECK)?;
        self.check_no_epoch("MPI_Win_lock_all")?;
        let unchecked = assertion & mode::NOCHECK != 0;
        if !unchecked {
            // In the order of ranks, in which everybody waits.
            self.near_locks().try_for_each(|locks| self.take_lock(world, locks, false))?;
        }
        self.epoch.set_unchecked(unchecked);
        self.epoch.set_whole(Whole::LockAll);
        Ok(())
    }

    /// The locks of the ranks of our node.
    fn near_locks(&self) -> impl Iterator<Item = Locks<'_>> {
        self.peers.records().filter_map(|(_, peer)| self.locks(peer))
    }

    /// Waits for a lock of our node.
    fn take_lock(&self, world: &World, locks: Locks<'_>, alone: bool) -> Result<()> {
        let ticket = locks.turns().ask(alone);
        if !locks.turns().has_turn(ticket) {
            self.until_turn(world, locks, ticket)?;
        }
        if !alone {
            // The next one may share it.
            self.wake(locks, |wake| world.node().submit(wake));
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
        let (near, ranks) = (self.locks(self.peer(rank)), rank..rank + 1);
        let far = if near.is_some() { &[][..] } else { &[rank] };
        let ended = match single {
            Single::Unchecked => self.flush(world, ranks, true),
            _ => self.end_of_locks(world, ranks, single == Single::Alone, far, near.into_iter()),
        };
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
        let (all, begun) = (0..self.peers.len(), std::mem::take(&mut *self.epoch.some()));
        let ended = match self.epoch.is_unchecked() {
            true => self.flush(world, all, true),
            false => self.end_of_locks(world, all, false, &begun, self.near_locks()),
        };
        begun.into_iter().for_each(|rank| self.epoch.set(rank, Single::None));
        self.epoch.set_whole(Whole::None);
        ended
    }

    /// Completes everything to some ranks, then gives back their locks: those of `far` with frames, with one
    /// answer for both.
    fn end_of_locks<'a>(
        &self,
        world: &World,
        ranks: Range<i32>,
        alone: bool,
        far: &[i32],
        near: impl Iterator<Item = Locks<'a>>,
    ) -> Result<()> {
        // Frames follow each other, but nothing that the network does.
        let settled = self.settle(world, ranks.clone());
        far.iter().for_each(|&rank| self.ask(world, rank, None, |rank| rank.unlock(alone)));
        let ended = settled.and(self.flush(world, ranks, true));
        fence(Ordering::SeqCst);
        for locks in near {
            locks.turns().release(alone);
            self.wake(locks, |wake| world.node().submit(wake));
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
