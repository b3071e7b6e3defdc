//! Which numbers communicators of this process have. A number is free for reuse when its communicator is
//! freed and nothing runs on it.

use super::COLLECTIVE;
use crate::error::{Class, Result};
use newmadeleine::engine::Context;
use std::sync::{Mutex, MutexGuard};

/// COMM_WORLD has 1, COMM_SELF 2; 0 is for the library.
const FIRST: u32 = 3;
/// Numbers are used round and round while there are no more communicators than this, so that a message that
/// nobody received is not taken by the next communicator.
const ROUND: u32 = 4096;
/// Numbers are below: a program that never frees its communicators gets an error while it still has memory
/// (at 1 KiB each these are 64 MiB).
const LAST: u32 = 1 << 16;

/// The context of the frames of all windows, of a number that is never given out: their tags tell the
/// windows apart, so that one look finds what has come for any of them.
pub(crate) const FRAMES: Context = Context(LAST << COLLECTIVE.trailing_ones());

/// The context of messages about failures, of a number that is never given out either.
pub(crate) const FAULTS: Context = Context((LAST + 1) << COLLECTIVE.trailing_ones());

/// The context of what ranks ask the owners of regions of files, of a number that is never given out either;
/// tags tell the files apart.
pub(crate) const FILES: Context = Context((LAST + 2) << COLLECTIVE.trailing_ones());

/// The number of the communicator on which all processes agree when they join the job. The first death closes
/// its contexts.
pub(crate) const JOINING: u32 = LAST + 3;

/// The number of communicators whose own is not agreed upon yet; nobody may use them.
pub(super) const AWAITED: u32 = (Context::LIMIT >> COLLECTIVE.trailing_ones()) - 1;

const WORDS: usize = (LAST / u64::BITS) as usize;

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers::new());

struct Numbers {
    /// A bit for each number.
    used: [u64; WORDS],
    next: u32,
}

fn numbers() -> MutexGuard<'static, Numbers> {
    NUMBERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Word and bit of a number; none if it is not one that is given out.
fn place(number: u32) -> Option<(usize, u64)> {
    (number < LAST).then(|| ((number / u64::BITS) as usize, 1 << (number % u64::BITS)))
}

impl Numbers {
    const fn new() -> Numbers {
        Numbers { used: [0; WORDS], next: FIRST }
    }

    /// The first free number from `floor` on.
    fn reserve(&mut self, floor: u32) -> Option<u32> {
        let (first, bit) = place(floor)?;
        // In the first word, the numbers below the floor do not count.
        let below = |word: usize| if word == first { bit - 1 } else { 0 };
        let word = (first..WORDS).find(|&word| self.used[word] | below(word) != u64::MAX)?;
        let bit = (self.used[word] | below(word)).trailing_ones();
        self.used[word] |= 1 << bit;
        Some(word as u32 * u64::BITS + bit)
    }

    fn release(&mut self, number: u32) {
        if let Some((word, bit)) = place(number) {
            self.used[word] &= !bit;
        }
    }
}

/// Where to begin looking for a number.
pub(super) fn floor() -> u32 {
    numbers().next
}

/// Reserves the first free number from `floor` on.
///
/// # Errors
/// There is none left.
pub(super) fn reserve(floor: u32) -> Result<u32> {
    let none = || {
        Class::OTHER
            .error(format!("no context is left for another communicator: there are {LAST}, free some"))
    };
    numbers().reserve(floor.max(FIRST)).ok_or_else(none)
}

/// The number has been agreed upon.
pub(super) fn agreed(number: u32) {
    let mut numbers = numbers();
    numbers.next = if number < ROUND { number + 1 } else { FIRST };
}

/// The number is not used any more.
pub(super) fn release(number: u32) {
    numbers().release(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_once_at_a_time() {
        let mut numbers = Numbers::new();
        assert_eq!(numbers.reserve(FIRST), Some(FIRST));
        assert_eq!(numbers.reserve(FIRST), Some(FIRST + 1));
        numbers.release(FIRST);
        assert_eq!(numbers.reserve(FIRST), Some(FIRST));
        assert_eq!(numbers.reserve(FIRST), Some(FIRST + 2));
        assert_eq!((numbers.reserve(LAST), numbers.reserve(AWAITED)), (None, None));
        numbers.release(AWAITED);
        assert_eq!((numbers.reserve(LAST - 1), numbers.reserve(LAST - 1)), (Some(LAST - 1), None));
    }

    #[test]
    fn all_numbers_are_found_and_then_none() {
        let mut numbers = Numbers::new();
        assert!((FIRST..LAST).all(|number| numbers.reserve(FIRST) == Some(number)));
        assert_eq!(numbers.reserve(FIRST), None);
        numbers.release(777);
        assert_eq!((numbers.reserve(778), numbers.reserve(700)), (None, Some(777)));
    }
}
