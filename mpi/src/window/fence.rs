//! Fences: all ranks end one epoch and begin the next.

use super::Window;
use super::epoch::Whole;
use crate::api::barrier;
use crate::error::{Class, Result};
use crate::world::world;

/// Assertions, with the numbers of the standard.
pub(crate) mod mode {
    /// Nobody else asks for the lock, or the group has posted already.
    pub const NOCHECK: i32 = 1024;
    /// No accesses were begun before.
    pub const NOPRECEDE: i32 = 2048;
    /// Nobody writes here until the next fence.
    pub const NOPUT: i32 = 4096;
    /// This process has not stored here since the last epoch.
    pub const NOSTORE: i32 = 8192;
    /// No accesses follow.
    pub const NOSUCCEED: i32 = 16384;
}

impl Window {
    /// Checks an assertion.
    ///
    /// # Errors
    /// It has bits that mean nothing to this call.
    pub(super) fn check_assertion(&self, call: &str, assertion: i32, known: i32) -> Result<()> {
        if assertion & !known == 0 {
            return Ok(());
        }
        let text = format_args!("{call}: the assertion {assertion} is none of those that it knows");
        Err(self.error(Class::ASSERT, text))
    }

    /// `MPI_Win_fence`
    pub(crate) fn fence(&self, assertion: i32) -> Result<()> {
        use mode::{NOPRECEDE, NOPUT, NOSTORE, NOSUCCEED};
        let world = world()?;
        self.check_assertion("MPI_Win_fence", assertion, NOPRECEDE | NOPUT | NOSTORE | NOSUCCEED)?;
        if self.epoch.whole() != Whole::Fenced {
            self.check_no_epoch("MPI_Win_fence")?;
        } else if assertion & NOPRECEDE != 0 {
            let text = format_args!("MPI_Win_fence: MPI_MODE_NOPRECEDE, but memory was accessed before");
            return Err(self.out_of_sync(text));
        }
        let flushed = self.flush(world, 0..self.peers.len(), true);
        // The others wait, also for one that has failed.
        barrier(self.on.handle)?;
        let next = if assertion & NOSUCCEED == 0 { Whole::Fence } else { Whole::None };
        self.epoch.set_whole(next);
        flushed
    }
}
