//! How the ranks of a node make memory that all of them see, and wait for each other in it.

use super::agreement::greatest;
use super::lost::lost;
use crate::comm::Communicator;
use crate::error::Result;
use crate::task;
use crate::world::World;
use newmadeleine::SharedMemory;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Looks between two turns of the pump: others may wait for our messages before they come to the board.
const LOOKS: u32 = 64;
/// Then the core is given to others now and then.
const SPIN: Duration = Duration::from_micros(50);
/// After this we look from time to time, and whether somebody is gone.
const AWAKE: Duration = Duration::from_millis(10);

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

/// Waiting for other ranks.
pub(super) struct Wait<'a> {
    pub(super) world: &'a World,
    pub(super) comm: &'a Communicator,
    /// Others need our core to get on.
    pub(super) is_crowded: bool,
    pub(super) looks: u32,
    pub(super) since: Option<Instant>,
    /// Times that we looked whether somebody is gone.
    pub(super) checked: u32,
}

impl Wait<'_> {
    #[inline]
    pub(super) fn pause(&mut self) -> Result<()> {
        self.looks += 1;
        if self.is_crowded || self.looks.is_multiple_of(LOOKS) {
            return self.rest();
        }
        std::hint::spin_loop();
        Ok(())
    }

    #[cold]
    fn rest(&mut self) -> Result<()> {
        self.world.node().turn();
        task::advance(self.world);
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited > AWAKE {
            std::thread::sleep(Duration::from_nanos(task::NAP.as_ns()));
        } else if self.is_crowded || waited > SPIN {
            std::thread::yield_now();
        }
        // About every AWAKE.
        let due = (waited.as_micros() / AWAKE.as_micros()) as u32;
        if due > self.checked {
            self.checked = due;
            return lost(self.world, self.comm).map_or(Ok(()), Err);
        }
        Ok(())
    }
}
