//! Accesses to the memory that another host exposes, and what lies there.
//!
//! Each access leaves a trace of its own, by which the oracle finds whether it was done once, in order and in
//! one step: a range that nobody else writes, a digit of a number, a value of its own in a cell.

use nmad_rma::Place;

/// The context of all messages about exposed memory.
pub const CONTEXT: u32 = 1 << 20;
/// Bytes of a word.
pub const WORD: u64 = 8;
/// Numbers to which accesses add digits.
pub const NUMBERS: u64 = 16;
/// Digits of a number, of four bits.
pub const DIGITS: u64 = 16;
/// Cells whose values accesses exchange.
pub const CELLS: u64 = 8;
/// Where the word is that hosts count up while they have the lock.
pub const COUNTER: u64 = (NUMBERS + CELLS) * WORD;
/// Where the ranges begin that puts write.
pub const RANGES: u64 = COUNTER + WORD;

/// An access by its place in the plan.
pub type Number = usize;

/// An access.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Which host asks.
    pub host: usize,
    /// Whose memory.
    pub target: usize,
    /// Its operation.
    pub touch: Touch,
}

/// The operation of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Writes its payload to a range.
    Put {
        /// Where the range begins.
        at: u64,
        /// Its bytes.
        len: u64,
    },
    /// Reads what a put of the same host has written, which is complete.
    Get {
        /// Where the range begins.
        at: u64,
        /// Its bytes.
        len: u64,
        /// The put that wrote it.
        put: Number,
    },
    /// Adds one to a digit of a number; may read what was there.
    Add {
        /// Which number.
        number: u64,
        /// Which digit.
        digit: u64,
        /// Reads, too.
        fetches: bool,
    },
    /// Writes its value into a cell and reads what was there.
    Exchange {
        /// Which cell.
        cell: u64,
    },
    /// The same, if there is a certain value.
    Swap {
        /// Which cell.
        cell: u64,
        /// That value.
        compare: u64,
    },
    /// Reads the counter, with the lock.
    Count,
    /// Writes one more than what the host has read last.
    Raise,
}

impl Touch {
    /// Where it goes.
    pub fn place(&self) -> Place {
        match *self {
            Touch::Put { at, len } | Touch::Get { at, len, .. } => Place::One(at, len),
            Touch::Add { number, .. } => Place::One(number * WORD, WORD),
            Touch::Exchange { cell } | Touch::Swap { cell, .. } => Place::One(cell_at(cell), WORD),
            Touch::Count | Touch::Raise => Place::One(COUNTER, WORD),
        }
    }

    /// Whether it reads.
    pub fn reads(&self) -> bool {
        !matches!(self, Touch::Put { .. } | Touch::Add { fetches: false, .. } | Touch::Raise)
    }
}

/// Where a cell is.
pub fn cell_at(cell: u64) -> u64 {
    (NUMBERS + cell) * WORD
}

/// The value that an access writes into a cell: nobody else does.
pub fn value(number: Number) -> u64 {
    number as u64 + 1
}

/// What an access adds to a number.
pub fn addend(digit: u64) -> u64 {
    1 << (4 * digit)
}
