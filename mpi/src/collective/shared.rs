//! The board and the pool of a communicator, and what was chosen for them.

use crate::algorithm::board::{Board, POST_MAX};
use crate::algorithm::choice::{Family, Memory};
use crate::algorithm::pool::Pool;
use newmadeleine::SharedMemory;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Mutex, OnceLock};

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
    /// The board, if it was made.
    pub(super) fn board(&self) -> Option<&Mutex<Board>> {
        self.board.made.get()?.as_ref()
    }

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
    /// Nonblocking collectives that wanted it, and the first of them that takes it. One rank may call some
    /// before the blocking one in which it was made that another rank calls behind that.
    pub(super) later: AtomicU64,
    pub(super) later_from: AtomicU64,
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        let (later, later_from) = (AtomicU64::new(0), AtomicU64::new(0));
        Place { wanted: AtomicU32::new(0), made: OnceLock::new(), later, later_from }
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
