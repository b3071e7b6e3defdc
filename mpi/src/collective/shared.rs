//! The boards and the pool of a communicator, and what was chosen for them.

use crate::algorithm::board::tiers::Tiers;
use crate::algorithm::board::{Board, POST_MAX};
use crate::algorithm::choice::{Family, Memory};
use crate::algorithm::pool::Pool;
use newmadeleine::SharedMemory;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

/// Classes of length, by powers of two.
const CLASSES: usize = 40;

/// The class of a length.
const fn class(len: u64) -> usize {
    (u64::BITS - len.leading_zeros()) as usize
}

/// The first class of lengths that no board takes.
const LONG: usize = class(POST_MAX as u64) + 1;

/// What a communicator has of both.
pub(super) struct Shared {
    board: Place<Board>,
    boards: Place<Tiers>,
    pool: Place<Pool>,
    pub(super) nonblocking: Nonblocking,
    /// Nanoseconds of a cache line between cores of the ranks, if that was measured.
    pub(super) line_ns: OnceLock<f64>,
    chosen: [[Chosen; CLASSES]; Family::ALL.len()],
}

impl Default for Shared {
    fn default() -> Self {
        let chosen = std::array::from_fn(|_| std::array::from_fn(|_| Chosen::default()));
        let nonblocking = Nonblocking::default();
        let line_ns = OnceLock::new();
        Shared {
            board: Place::default(),
            boards: Place::default(),
            pool: Place::default(),
            nonblocking,
            line_ns,
            chosen,
        }
    }
}

impl Shared {
    /// The board, if it was made.
    pub(super) fn board(&self) -> Option<&Mutex<Board>> {
        self.board.made.get()?.as_ref()
    }

    /// Takes note of the way of a line, on which all ranks have agreed, in the same blocking call on all of
    /// them; the choice between pool and messages, which only blocking calls have, is made again.
    pub(super) fn learn(&self, line_ns: f64) {
        if self.line_ns.set(line_ns).is_ok() {
            let long = self.chosen.iter().flat_map(|classes| &classes[LONG..]);
            long.for_each(|Chosen(number)| number.store(0, Ordering::Relaxed));
        }
    }

    #[inline]
    pub(super) fn chosen(&self, family: Family, len: u64) -> &Chosen {
        let class = match len > POST_MAX as u64 {
            true => class(len).clamp(LONG, CLASSES - 1),
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
    const BOARDS: u8 = 4;
    /// The line for the user was written.
    pub(super) const TOLD: u8 = 1 << 7;

    pub(super) fn number(memory: Option<Memory>) -> u8 {
        match memory {
            None => Self::SCHEDULE,
            Some(Memory::Board) => Self::BOARD,
            Some(Memory::Boards) => Self::BOARDS,
            Some(Memory::Pool) => Self::POOL,
        }
    }
}

/// Nonblocking collectives for which the board is chosen. A rank may call one of them before the blocking one
/// in which the board is made, and another rank behind that: the first of them that take the board is agreed
/// upon, and those before it are messages on all ranks.
#[derive(Default)]
pub(super) struct Nonblocking {
    called: AtomicU64,
    first: AtomicU64,
}

impl Nonblocking {
    /// Counts a call; whether it takes the board, if there is one.
    pub(super) fn count(&self) -> bool {
        self.called.fetch_add(1, Ordering::Relaxed) >= self.first.load(Ordering::Relaxed)
    }

    /// How many were called.
    pub(super) fn called(&self) -> u64 {
        self.called.load(Ordering::Relaxed)
    }

    /// No rank has called more than this number: from there on they take the board.
    pub(super) fn begin(&self, called: u64) {
        self.first.store(called, Ordering::Relaxed);
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
    fn memory(&self) -> &SharedMemory;
}

/// The functions of a method are those of its type.
macro_rules! means {
    ($($means:ident: $memory:ident at $place:ident),*) => {$(
        impl Means for $means {
            const MEMORY: Memory = Memory::$memory;

            fn place(shared: &Shared) -> &Place<Self> {
                &shared.$place
            }

            fn len(size: usize) -> usize {
                $means::len(size)
            }

            fn new(memory: SharedMemory, size: usize, me: usize) -> Self {
                $means::new(memory, size, me)
            }

            fn memory(&self) -> &SharedMemory {
                $means::memory(self)
            }
        }
    )*};
}

means!(Board: Board at board, Tiers: Boards at boards, Pool: Pool at pool);
