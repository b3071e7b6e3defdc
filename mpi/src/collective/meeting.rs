//! How the ranks of a node make memory that all of them see, and wait for each other in it.

use super::agreement::greatest;
use crate::comm::Communicator;
use crate::error::Result;
use crate::lost::{Checks, lost};
use crate::sleepers::{self, Sleepers};
use crate::task;
use crate::world::World;
use newmadeleine::SharedMemory;
use newmadeleine::engine::Engine;
use newmadeleine::progress::Patience;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

/// Looks between two turns of the pump: others may wait for our messages before they come to the board.
const LOOKS: u32 = 64;

/// Makes memory that all ranks of a node see, mapped as [`SharedMemory::create_at`] says; none if one of them
/// cannot. Collective.
pub(crate) fn make(
    comm: &Communicator,
    (len, unit): (usize, usize),
    me: usize,
) -> Result<Option<SharedMemory>> {
    let made = if me == 0 { SharedMemory::create_at(len, unit).ok() } else { None };
    let mut offer = [0.0; 3];
    if let Some((memory, fd)) = &made {
        // A rank that finds other memory under this name, in another namespace say, sees another mark.
        let mark =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| u64::from(now.subsec_nanos()) | 1);
        memory.word(mark_at(len)).store(mark, Ordering::Release);
        offer = [f64::from(std::process::id()), f64::from(fd.as_raw_fd()), mark as f64];
    }
    greatest(comm, &mut offer)?;
    let [process, fd, mark] = offer.map(|figure| figure as u64);
    let (memory, kept) = match made {
        Some((memory, fd)) => (Some(memory), Some(fd)),
        None => {
            let is_marked = |memory: &SharedMemory| memory.word(mark_at(len)).load(Ordering::Acquire) == mark;
            (open(process, fd, (len, unit)).filter(is_marked), None)
        }
    };
    let mut missing = [f64::from(u8::from(memory.is_none()))];
    greatest(comm, &mut missing)?;
    // All have it, or nobody uses it: the name is not needed any more.
    drop(kept);
    Ok(memory.filter(|_| missing[0] == 0.0))
}

/// The last word, which boards and pools leave alone.
const fn mark_at(len: usize) -> usize {
    len - size_of::<u64>()
}

fn open(process: u64, fd: u64, (len, unit): (usize, usize)) -> Option<SharedMemory> {
    let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{process}/fd/{fd}")).ok()?;
    SharedMemory::adopt_at(&file, len, unit).ok()
}

/// Bytes at the end of memory in which ranks wait: a cache line with the word of the ranks that sleep, and
/// a word for [`make`].
pub(super) const SLEEPERS: usize = 128;

/// Returns the ranks that sleep until the memory changes.
#[inline]
pub(super) fn sleepers(memory: &SharedMemory) -> Sleepers<'_> {
    Sleepers(memory.word(memory.end() - SLEEPERS))
}

/// Wakes these ranks, whose bits were taken.
#[cold]
pub(super) fn wake(engine: &mut Engine, comm: &Communicator, bits: u64) {
    let processes = comm.local().processes().enumerate();
    sleepers::wake(engine, processes.filter(|(rank, _)| *rank as i32 != comm.rank()), bits);
}

/// A wait for other ranks, for a change of memory in which sleeping ranks are noted.
pub(super) struct Wait<'a> {
    world: &'a World,
    comm: &'a Communicator,
    /// Others need our core to get on.
    is_crowded: bool,
    looks: u32,
    patience: Patience,
    /// Whether this rank's bit among the sleepers was set.
    is_set: bool,
    checks: Checks,
}

impl<'a> Wait<'a> {
    #[inline]
    pub(super) fn new(world: &'a World, comm: &'a Communicator, is_crowded: bool) -> Wait<'a> {
        let (looks, patience, is_set, checks) = (0, Patience::default(), false, Checks::default());
        Wait { world, comm, is_crowded, looks, patience, is_set, checks }
    }

    #[inline]
    pub(super) fn pause(&mut self, memory: &SharedMemory, has_changed: bool) -> Result<()> {
        if has_changed {
            self.wake_sleepers(memory);
        }
        self.looks += 1;
        if self.is_crowded || self.looks.is_multiple_of(LOOKS) {
            return self.rest(memory);
        }
        std::hint::spin_loop();
        Ok(())
    }

    /// Others may wait for our messages before they come to the board.
    #[cold]
    fn rest(&mut self, memory: &SharedMemory) -> Result<()> {
        task::advance(self.world);
        let sleepers = sleepers(memory);
        let me = self.comm.rank() as usize;
        let is_set = &mut self.is_set;
        task::pause_for(self.world, &mut self.patience, &mut || sleepers.may_sleep(me, is_set));
        if self.checks.is_due() { lost(self.world, self.comm).map_or(Ok(()), Err) } else { Ok(()) }
    }

    #[inline]
    fn wake_sleepers(&self, memory: &SharedMemory) {
        match sleepers(memory).take() {
            0 => {}
            ranks => self.world.node().submit(|engine| wake(engine, self.comm, ranks)),
        }
    }

    /// Ends the wait; the memory was changed for others perhaps.
    #[inline]
    pub(super) fn end(self, memory: &SharedMemory) {
        if self.is_set {
            sleepers(memory).is_awake(self.comm.rank() as usize);
        }
        self.world.node().found(&self.patience);
        self.wake_sleepers(memory);
    }
}
