//! Which numbers communicators of this process have. A number is free for reuse when its communicator is
//! freed and nothing runs on it.

use super::COLLECTIVE;
use crate::error::{Class, Result};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

/// COMM_WORLD has 1, COMM_SELF 2; 0 is for the library.
const FIRST: u32 = 3;
/// Numbers are used round and round while there are no more communicators than this, so that a message that
/// nobody received is not taken by the next communicator.
const ROUND: u32 = 4096;
/// Numbers are below.
const LAST: u32 = (newmadeleine::engine::Context::LIMIT >> COLLECTIVE.trailing_ones()) - 1;

/// The number of communicators whose own is not agreed upon yet; nobody may use them.
pub(super) const AWAITED: u32 = LAST;

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { used: BTreeSet::new(), next: FIRST });

struct Numbers {
    used: BTreeSet<u32>,
    next: u32,
}

fn numbers() -> MutexGuard<'static, Numbers> {
    NUMBERS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Numbers {
    /// The first free number from `floor` on.
    fn reserve(&mut self, floor: u32) -> Option<u32> {
        let number = (floor..LAST).find(|number| !self.used.contains(number))?;
        self.used.insert(number);
        Some(number)
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
    let none = || Class::OTHER.error("no context is left for another communicator: free some");
    numbers().reserve(floor.max(FIRST)).ok_or_else(none)
}

/// The number has been agreed upon.
pub(super) fn agreed(number: u32) {
    let mut numbers = numbers();
    numbers.next = if number < ROUND { number + 1 } else { FIRST };
}

/// The number is not used any more.
pub(super) fn release(number: u32) {
    numbers().used.remove(&number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_once_at_a_time() {
        let mut numbers = Numbers { used: BTreeSet::new(), next: FIRST };
        assert_eq!(numbers.reserve(FIRST), Some(FIRST));
        assert_eq!(numbers.reserve(FIRST), Some(FIRST + 1));
        numbers.used.remove(&FIRST);
        assert_eq!(numbers.reserve(FIRST), Some(FIRST));
        assert_eq!(numbers.reserve(FIRST), Some(FIRST + 2));
        assert_eq!(numbers.reserve(LAST), None);
    }
}
