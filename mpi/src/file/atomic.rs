//! Atomic mode: one access at a time to bytes that several want, by the lock of a window of rank 0.

use super::{File, Kind, lock};
use crate::api;
use crate::comm::{Named, gathered};
use crate::error::{Class, Result};
use crate::handle::{Info, Win};
use crate::window::{self, EXCLUSIVE, SHARED};
use std::sync::MutexGuard;

/// The lock of a file in atomic mode.
pub(super) struct Lock(Win);

/// The lock, held until it is let go.
pub(super) struct Held<'a>(Option<(Win, MutexGuard<'a, ()>)>);

impl Lock {
    fn new(on: &Named) -> Result<Lock> {
        Ok(Lock(api::win_allocate(0, 1, Info::NULL, on.handle)?.1))
    }

    /// Ends it; all ranks call.
    pub(super) fn free(self) -> Result<()> {
        api::win_free(&mut { self.0 })
    }
}

impl Held<'_> {
    /// Lets the lock go.
    pub(super) fn release(self) -> Result<()> {
        self.0.map_or(Ok(()), |(win, _turn)| window::lookup(win)?.unlock(0))
    }
}

impl File {
    /// Whether it is in atomic mode.
    pub(crate) fn is_atomic(&self) -> bool {
        lock(&self.atomic).is_some()
    }

    /// `MPI_File_set_atomicity`
    ///
    /// # Errors
    /// Ranks give something else.
    pub(crate) fn set_atomicity(&self, is_atomic: bool) -> Result<()> {
        let all = gathered(&self.on.comm, &[i64::from(is_atomic)])?;
        if let Some(rank) = all.iter().position(|other| (*other != 0) != is_atomic) {
            let text = format_args!("rank {rank} sets the opposite mode: all ranks must set the same");
            return Err(self.error(Class::NOT_SAME, text));
        }
        let old = lock(&self.atomic).take();
        match (old, is_atomic) {
            (Some(old), true) => *lock(&self.atomic) = Some(old),
            (Some(old), false) => old.free()?,
            (None, true) => {
                let new = Lock::new(&self.on)?;
                *lock(&self.atomic) = Some(new);
            }
            (None, false) => {}
        }
        Ok(())
    }

    /// Waits for the turn of an access in atomic mode; in the other mode there is nothing to wait for.
    ///
    /// # Errors
    /// A rank that may hold the lock is gone.
    pub(super) fn hold(&self, kind: Kind) -> Result<Held<'_>> {
        let Some(win) = lock(&self.atomic).as_ref().map(|lock| lock.0) else { return Ok(Held(None)) };
        // A process has the lock of a window once.
        let turn = lock(&self.turn);
        let kind = if kind == Kind::Write { EXCLUSIVE } else { SHARED };
        window::lookup(win)?.lock(kind, 0, 0)?;
        Ok(Held(Some((win, turn))))
    }
}
