//! The board and the pool of a communicator: their memory, and how ranks wait at them.

use super::settings::greatest;
use crate::algorithm::board::{Board, POST_MAX};
use crate::algorithm::choice::{Family, Memory};
use crate::algorithm::pool::Pool;
use crate::comm::Communicator;
use crate::error::{Class, Result};
use crate::task;
use crate::world::World;
use newmadeleine::SharedMemory;
use newmadeleine::engine::PeerId;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Looks between two turns of the pump: others may wait for our messages before they come to the board.
const LOOKS: u32 = 64;
/// Then the core is given to others now and then.
const SPIN: Duration = Duration::from_micros(50);
/// After this we look from time to time, and whether somebody is gone.
const AWAKE: Duration = Duration::from_millis(10);
const NAP: Duration = Duration::from_micros(50);

/// Classes of length, by powers of two.
const CLASSES: usize = 40;

/// What a communicator has of both.
pub(super) struct Shared {
    board: Place<Board>,
    pool: Place<Pool>,
    chosen: [[Chosen; CLASSES]; Family::ALL.len()],
}

impl Default for Shared {
    fn default() -> Self {
        let chosen = std::array::from_fn(|_| std::array::from_fn(|_| Chosen::default()));
        Shared { board: Place::default(), pool: Place::default(), chosen }
    }
}

impl Shared {
    #[inline]
    pub(super) fn chosen(&self, family: Family, len: u64) -> &Chosen {
        let class = |len: u64| (u64::BITS - len.leading_zeros()) as usize;
        let class = match len > POST_MAX as u64 {
            true => class(len).clamp(class(POST_MAX as u64) + 1, CLASSES - 1),
            false => class(len),
        };
        &self.chosen[family as usize][class]
    }
}

/// The choice for collectives of one family and class of length: asked once, since it takes longer than the
/// collective itself.
#[derive(Default)]
pub(super) struct Chosen(pub(super) AtomicU8);

impl Chosen {
    const SCHEDULE: u8 = 1;
    const BOARD: u8 = 2;
    const POOL: u8 = 3;
    /// The line for the user was written.
    pub(super) const TOLD: u8 = 1 << 7;

    pub(super) fn number(memory: Option<Memory>) -> u8 {
        match memory {
            None => Self::SCHEDULE,
            Some(Memory::Board) => Self::BOARD,
            Some(Memory::Pool) => Self::POOL,
        }
    }
}

/// One of them, if there is one.
pub(super) struct Place<T> {
    /// Collectives that wanted it before it was made.
    pub(super) wanted: AtomicU32,
    /// None: it cannot be had.
    pub(super) made: OnceLock<Option<Mutex<T>>>,
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Place { wanted: AtomicU32::new(0), made: OnceLock::new() }
    }
}

/// A method of collectives in shared memory.
pub(super) trait Means: Sized {
    const MEMORY: Memory;
    fn place(shared: &Shared) -> &Place<Self>;
    /// Bytes for `size` ranks.
    fn len(size: usize) -> usize;
    fn new(memory: SharedMemory, size: usize, me: usize) -> Self;
}

impl Means for Board {
    const MEMORY: Memory = Memory::Board;

    fn place(shared: &Shared) -> &Place<Self> {
        &shared.board
    }

    fn len(size: usize) -> usize {
        Board::len(size)
    }

    fn new(memory: SharedMemory, size: usize, me: usize) -> Self {
        Board::new(memory, size, me)
    }
}

impl Means for Pool {
    const MEMORY: Memory = Memory::Pool;

    fn place(shared: &Shared) -> &Place<Self> {
        &shared.pool
    }

    fn len(size: usize) -> usize {
        Pool::len(size)
    }

    fn new(memory: SharedMemory, size: usize, me: usize) -> Self {
        Pool::new(memory, size, me)
    }
}

/// Makes memory that all ranks of a node see; none if one of them cannot. Collective.
pub(crate) fn make(comm: &Communicator, len: usize, me: usize) -> Result<Option<SharedMemory>> {
    let made = if me == 0 { SharedMemory::create(len).ok() } else { None };
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
            (open(process, fd, len).filter(|m| m.word(mark_at(len)).load(Ordering::Acquire) == mark), None)
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

fn open(process: u64, fd: u64, len: usize) -> Option<SharedMemory> {
    let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{process}/fd/{fd}")).ok()?;
    SharedMemory::adopt(&file, len).ok()
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
            std::thread::sleep(NAP);
        } else if self.is_crowded || waited > SPIN {
            std::thread::yield_now();
        }
        // About every AWAKE.
        let due = (waited.as_micros() / AWAKE.as_micros()) as u32;
        if due > self.checked {
            self.checked = due;
            return self.look_for_the_lost();
        }
        Ok(())
    }

    /// A process that has died never arrives: fail instead of waiting for it.
    fn look_for_the_lost(&self) -> Result<()> {
        for &process in self.comm.local().processes() {
            if let Some(why) = self.world.node().with(|engine| engine.failure(PeerId(process))) {
                return Err(Class::PROC_ABORTED.error(format!("rank {process} of the job is gone: {why}")));
            }
        }
        Ok(())
    }
}
