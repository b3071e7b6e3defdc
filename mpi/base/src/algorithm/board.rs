//! The board: short collectives of ranks that share a node, through memory that all of them see.
//!
//! A message from rank to rank takes a header, matching and a completion; a short collective between cores
//! needs no more than the way of a cache line. So each rank has a ring of *slots* in which it posts its data,
//! with the number of the operation in the same cache line, and the others look ([`ring`]). Each rank
//! combines all data by itself, in the order of ranks.
//!
//! Operations of nonblocking calls have slots of their own, and end when somebody looks ([`later`]). So they
//! are matched among themselves, as they are where they are messages: programs are known that call a blocking
//! one before a nonblocking one on some ranks and behind it on others.

mod later;
mod parts;
mod ranks;
mod ring;
mod table;
pub mod tiers;
mod turn;

pub use later::Flag;
pub use ranks::Ranks;
pub use ring::POST_MAX;
pub use turn::Turn;

use super::team::Team;
use crate::error::Result;
use later::Laters;
use nmad_drivers::node::Segment as SharedMemory;
use ring::{Post, Ring};
use std::ops::Range;

/// Most ranks: everybody looks at everybody's slot.
pub const RANKS_MAX: usize = 32;

/// Whether ranks can do an operation on a board in which each posts `len` bytes at most.
pub fn serves(team: &Team, len: u64) -> bool {
    len <= POST_MAX as u64 && is_of_one_node(team, RANKS_MAX)
}

/// Whether they share a node, and are not more than so many.
pub(super) fn is_of_one_node(team: &Team, ranks_max: usize) -> bool {
    !team.spans_nodes() && (2..=ranks_max).contains(&team.size())
}

/// Called between two looks while nothing has come, with the memory and whether this rank has changed it
/// since the last call; an error ends the wait.
pub type Pause<'a> = &'a mut dyn FnMut(&SharedMemory, bool) -> Result<()>;

/// One rank's view of the board.
#[derive(Debug)]
pub struct Board {
    memory: SharedMemory,
    ring: Ring,
    /// Operations of blocking calls that have begun.
    number: u64,
    later: Laters,
    unasked: parts::Unasked,
    lists: parts::Lists,
}

impl Board {
    /// Bytes of shared memory for `size` ranks.
    pub const fn len(size: usize) -> usize {
        2 * Ring::len(size)
    }

    /// The view of rank `me` of `size`, on memory of the right length that was zero at first.
    pub fn new(memory: SharedMemory, size: usize, me: usize) -> Board {
        let ring = Ring::new(0, size, me);
        let later = Laters::new(Ring::new(Ring::len(size), size, me));
        let (unasked, lists) = Default::default();
        Board { memory, ring, number: 0, later, unasked, lists }
    }

    /// The memory that the ranks share.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Does an operation to its end. Returns the ranks whose parts are too long to be posted, as far as they
    /// matter to this one: they are left to messages.
    ///
    /// # Errors
    /// A part is longer than its receiver expects (`MPI_ERR_TRUNCATE`), or what `pause` says.
    #[inline]
    pub fn run(&mut self, turn: &Turn<'_>, pause: Pause<'_>) -> Result<Ranks> {
        self.number += 1;
        if let Some(posted) = &turn.posted {
            let post = self.open(posted.len() as usize, pause)?;
            posted.post(&self.ring, &self.memory, post);
        }
        self.look(turn.awaits.clone(), pause)?;
        let left = turn.finish(&self.ring, &self.memory, self.number);
        self.ring.say_done(&self.memory, self.number);
        left
    }

    /// Begins an operation that ends later, or at once.
    pub fn start(&mut self, turn: Turn<'_>) -> Flag {
        self.later.start(&self.memory, turn, &mut self.lists)
    }

    /// Goes on with such operations, as far as they can.
    /// Returns whether the memory was changed.
    #[inline]
    pub fn go_on(&mut self) -> bool {
        self.later.go_on(&self.memory, &mut self.lists)
    }

    /// The place of our post in this operation, when it is free.
    #[inline]
    fn open(&mut self, len: usize, pause: Pause<'_>) -> Result<Post> {
        let mut has_changed = false;
        loop {
            if let Some(post) = self.ring.open(&self.memory, self.number, len) {
                return Ok(post);
            }
            pause(&self.memory, has_changed)?;
            has_changed = self.go_on();
        }
    }

    /// Waits for the posts of ranks in this operation.
    #[inline]
    fn look(&mut self, ranks: Range<usize>, pause: Pause<'_>) -> Result<()> {
        let mut has_changed = true;
        for rank in ranks {
            while !self.ring.is_there(&self.memory, rank, self.number) {
                pause(&self.memory, has_changed)?;
                // Others may wait for what nobody else can do while this call has the board.
                has_changed = self.go_on();
            }
        }
        Ok(())
    }
}
