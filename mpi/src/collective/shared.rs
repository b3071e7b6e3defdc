//! The board and the pool of a communicator: when they are made, and how ranks wait at them.

use super::call::Call;
use super::settings::{greatest, settings};
use crate::algorithm::board::{self, Board, POST_MAX, Pause};
use crate::algorithm::choice::Family;
use crate::algorithm::pool::{self, Pool};
use crate::comm::Communicator;
use crate::error::{Class, Result};
use crate::task;
use crate::world::{World, world};
use newmadeleine::engine::PeerId;
use newmadeleine::{SharedMemory, tell_user};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Collectives of a communicator before it gets memory for them: many communicators never have as many.
const FIRST: u32 = 4;
/// Looks between two turns of the pump: others may wait for our messages before they come to the board.
const LOOKS: u32 = 64;
/// Then the core is given to others now and then.
const SPIN: Duration = Duration::from_micros(50);
/// After this we look from time to time, and whether somebody is gone.
const AWAKE: Duration = Duration::from_millis(10);
const NAP: Duration = Duration::from_micros(50);

/// What a communicator has of both.
#[derive(Default)]
pub(super) struct Shared {
    board: Place<Board>,
    pool: Place<Pool>,
}

/// One of them, if there is one.
struct Place<T> {
    /// Collectives that wanted it before it was made.
    wanted: AtomicU32,
    /// None: it cannot be had.
    made: OnceLock<Option<Mutex<T>>>,
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Place { wanted: AtomicU32::new(0), made: OnceLock::new() }
    }
}

/// A method of collectives in shared memory.
trait Means: Sized {
    /// For whom, in the line that explains it.
    fn purpose() -> String;
    const RANKS_MAX: usize;
    /// Bytes for `size` ranks.
    fn len(size: usize) -> usize;
    fn new(memory: SharedMemory, size: usize, me: usize) -> Self;
}

impl Means for Board {
    const RANKS_MAX: usize = board::RANKS_MAX;

    fn purpose() -> String {
        format!("collectives of up to {POST_MAX} B: board")
    }

    fn len(size: usize) -> usize {
        Board::len(size)
    }

    fn new(memory: SharedMemory, size: usize, me: usize) -> Self {
        Board::new(memory, size, me)
    }
}

impl Means for Pool {
    const RANKS_MAX: usize = pool::RANKS_MAX;

    fn purpose() -> String {
        format!("reductions of more than {POST_MAX} B: pool")
    }

    fn len(size: usize) -> usize {
        Pool::len(size)
    }

    fn new(memory: SharedMemory, size: usize, me: usize) -> Self {
        Pool::new(memory, size, me)
    }
}

impl Call {
    /// Does a collective on the board, if every rank does: `len` are the bytes that a rank posts, the same
    /// on all ranks. False: it takes another way.
    #[inline]
    pub(super) fn on_board(
        &self,
        family: Family,
        len: u64,
        work: impl FnOnce(&mut Board, Pause<'_>) -> Result<()>,
    ) -> Result<bool> {
        if len > POST_MAX as u64 {
            return Ok(false);
        }
        self.in_shared(family, &self.on.comm.desk().shared.board, work)
    }

    /// Does a long reduction in the pool, if every rank does: `len` are the bytes of the vector, the same on
    /// all ranks; none if they do not lie in a row. False: it takes another way.
    pub(super) fn in_pool(
        &self,
        family: Family,
        len: Option<u64>,
        work: impl FnOnce(&mut Pool, Pause<'_>) -> Result<()>,
    ) -> Result<bool> {
        if len.is_none_or(|len| len <= POST_MAX as u64) {
            return Ok(false);
        }
        self.in_shared(family, &self.on.comm.desk().shared.pool, work)
    }

    #[inline]
    fn in_shared<T: Means>(
        &self,
        family: Family,
        place: &Place<T>,
        work: impl FnOnce(&mut T, Pause<'_>) -> Result<()>,
    ) -> Result<bool> {
        let settings = settings();
        if !self.is_blocking() || settings.check || !settings.choices.is_free(family) {
            return Ok(false);
        }
        let made = match place.made.get() {
            Some(made) => made.as_ref(),
            None => self.consider(place)?,
        };
        let Some(means) = made else { return Ok(false) };
        let mut means = means.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let is_crowded = self.team().crowd() > settings.cost.cores;
        let mut wait =
            Wait { world: world()?, comm: &self.on.comm, is_crowded, looks: 0, since: None, checked: 0 };
        work(&mut means, &mut || wait.pause()).map(|()| true)
    }

    /// Makes it when it is time: all ranks count the same calls.
    #[cold]
    fn consider<'a, T: Means>(&self, place: &'a Place<T>) -> Result<Option<&'a Mutex<T>>> {
        let (team, comm) = (self.team(), &self.on.comm);
        let (size, me) = (team.size(), team.me());
        let is_suited = self.remote().is_none() && !team.spans_nodes() && (2..=T::RANKS_MAX).contains(&size);
        if is_suited && place.wanted.fetch_add(1, Ordering::Relaxed) + 1 < FIRST {
            return Ok(None);
        }
        let memory = if is_suited { make(comm, T::len(size), me)? } else { None };
        if let (true, 0, Some(_)) = (settings().choices.explain, me, &memory) {
            tell_user(format_args!("nmad: over {size} ranks of one node, {}", T::purpose()));
        }
        let made = memory.map(|memory| Mutex::new(T::new(memory, size, me)));
        Ok(place.made.get_or_init(|| made).as_ref())
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
struct Wait<'a> {
    world: &'a World,
    comm: &'a Communicator,
    /// Others need our core to get on.
    is_crowded: bool,
    looks: u32,
    since: Option<Instant>,
    /// Times that we looked whether somebody is gone.
    checked: u32,
}

impl Wait<'_> {
    #[inline]
    fn pause(&mut self) -> Result<()> {
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
