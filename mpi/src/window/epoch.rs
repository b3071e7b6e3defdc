//! Epochs: when the memory of which rank may be accessed.

use super::Window;
use crate::error::{Class, Error, Result};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

/// What holds for all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Whole {
    /// Nothing.
    None,
    /// A fence was called; whether another one will be is not known before the first access.
    Fence,
    /// Accesses were begun since.
    Fenced,
    /// All ranks are locked, shared. Those of other nodes are asked for their locks when they are accessed.
    LockAll,
    /// Ranks were named by `MPI_Win_start`.
    Started,
}

/// What holds for one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Single {
    None,
    /// It is locked shared.
    Shared,
    /// It is locked alone.
    Alone,
    /// It counts as locked, since nobody else locks it (`MPI_MODE_NOCHECK`).
    Unchecked,
    /// `MPI_Win_start` has named it.
    Started,
    /// It was accessed since `MPI_Win_lock_all`, so it was asked for its lock.
    Begun,
}

impl Whole {
    #[inline]
    fn of(number: u8) -> Whole {
        use Whole::{Fence, Fenced, LockAll, None, Started};
        match number {
            0 => None,
            1 => Fence,
            2 => Fenced,
            3 => LockAll,
            _ => Started,
        }
    }
}

impl Single {
    #[inline]
    fn of(number: u8) -> Single {
        use Single::{Alone, Begun, None, Shared, Started, Unchecked};
        match number {
            0 => None,
            1 => Shared,
            2 => Alone,
            3 => Unchecked,
            4 => Started,
            _ => Begun,
        }
    }

    /// In words.
    pub(super) fn is_locked(self) -> bool {
        matches!(self, Single::Shared | Single::Alone | Single::Unchecked)
    }
}

/// The epochs of a window, as seen by one process.
pub(super) struct Epoch {
    whole: AtomicU8,
    ranks: Box<[AtomicU8]>,
    /// Ranks that are locked one by one.
    locked: AtomicU32,
    /// `MPI_Win_lock_all` has locked nobody (`MPI_MODE_NOCHECK`).
    unchecked: AtomicU8,
    /// Whom `MPI_Win_start` has named, or who was asked for a lock since `MPI_Win_lock_all`.
    some: Mutex<Vec<i32>>,
    /// Ranks that may access us since `MPI_Win_post`; none: it was not called.
    exposed: Mutex<Option<Vec<i32>>>,
}

impl Epoch {
    pub(super) fn new(ranks: usize) -> Epoch {
        Epoch {
            whole: AtomicU8::new(Whole::None as u8),
            ranks: (0..ranks).map(|_| AtomicU8::new(Single::None as u8)).collect(),
            locked: AtomicU32::new(0),
            unchecked: AtomicU8::new(0),
            some: Mutex::default(),
            exposed: Mutex::default(),
        }
    }

    #[inline]
    pub(super) fn whole(&self) -> Whole {
        Whole::of(self.whole.load(Ordering::Relaxed))
    }

    pub(super) fn set_whole(&self, whole: Whole) {
        self.whole.store(whole as u8, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn of(&self, rank: i32) -> Single {
        Single::of(self.ranks[rank as usize].load(Ordering::Relaxed))
    }

    /// Whether a rank may be accessed, and nobody has to take note of it.
    #[inline(always)]
    pub(super) fn is_open(&self, rank: i32) -> bool {
        match self.whole() {
            Whole::LockAll | Whole::Fenced => true,
            Whole::Fence => false,
            Whole::None | Whole::Started => self.of(rank) != Single::None,
        }
    }

    pub(super) fn set(&self, rank: i32, single: Single) {
        let old = Single::of(self.ranks[rank as usize].swap(single as u8, Ordering::Relaxed));
        match (old.is_locked(), single.is_locked()) {
            (false, true) => _ = self.locked.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.locked.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
    }

    pub(super) fn locked(&self) -> u32 {
        self.locked.load(Ordering::Relaxed)
    }

    pub(super) fn set_unchecked(&self, unchecked: bool) {
        self.unchecked.store(unchecked.into(), Ordering::Relaxed);
    }

    pub(super) fn is_unchecked(&self) -> bool {
        self.unchecked.load(Ordering::Relaxed) != 0
    }

    pub(super) fn some(&self) -> MutexGuard<'_, Vec<i32>> {
        super::lock(&self.some)
    }

    /// Whether a rank of another node has to be asked for its lock before it is accessed; takes note of it.
    pub(super) fn begins(&self, rank: i32) -> bool {
        let begins = self.whole() == Whole::LockAll && !self.is_unchecked() && self.of(rank) == Single::None;
        if begins {
            self.set(rank, Single::Begun);
            self.some().push(rank);
        }
        begins
    }

    pub(super) fn exposed(&self) -> MutexGuard<'_, Option<Vec<i32>>> {
        super::lock(&self.exposed)
    }
}

impl Window {
    /// Whether a rank may be accessed now; a fence that was called begins an epoch by that.
    ///
    /// # Errors
    /// There is no such epoch.
    #[inline]
    pub(super) fn check_access(&self, rank: i32) -> Result<()> {
        match self.epoch.whole() {
            Whole::Fenced | Whole::LockAll => Ok(()),
            Whole::Fence => {
                self.epoch.set_whole(Whole::Fenced);
                Ok(())
            }
            Whole::None | Whole::Started if self.epoch.of(rank) != Single::None => Ok(()),
            whole => Err(self.no_access(whole, rank)),
        }
    }

    #[cold]
    fn no_access(&self, whole: Whole, rank: i32) -> Error {
        match whole {
            Whole::Started => self.out_of_sync(format_args!(
                "rank {rank} is not in the group of MPI_Win_start, in whose epoch it is accessed"
            )),
            _ => self.out_of_sync(format_args!(
                "there is no access epoch to rank {rank}: call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or \
                 MPI_Win_lock_all first"
            )),
        }
    }

    /// Whether an epoch of another kind may begin.
    ///
    /// # Errors
    /// There is one already.
    pub(super) fn check_no_epoch(&self, call: &str) -> Result<()> {
        let ends = match self.epoch.whole() {
            _ if self.epoch.locked() > 0 => "MPI_Win_lock is open: call MPI_Win_unlock first",
            Whole::None | Whole::Fence => return Ok(()),
            Whole::Fenced => "MPI_Win_fence is open, in which memory was accessed: call MPI_Win_fence first",
            Whole::LockAll => "MPI_Win_lock_all is open: call MPI_Win_unlock_all first",
            Whole::Started => "MPI_Win_start is open: call MPI_Win_complete first",
        };
        Err(self.out_of_sync(format_args!("{call}: an epoch of {ends}")))
    }

    #[cold]
    pub(super) fn out_of_sync(&self, text: std::fmt::Arguments<'_>) -> Error {
        self.error(Class::RMA_SYNC, text)
    }
}
