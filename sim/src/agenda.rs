//! Future events: a heap ordered by virtual time and, at the same time, by the order of entry.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Things to happen, each at its point of virtual time in nanoseconds.
#[derive(Debug)]
pub struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    entered: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: u64,
    number: u64,
    what: T,
}

impl<T> Agenda<T> {
    /// Nothing to happen.
    pub fn new() -> Self {
        Agenda { heap: BinaryHeap::new(), entered: 0 }
    }

    /// Enters `what` at time `at`; returns its number, which counts up.
    pub fn enter(&mut self, at: u64, what: T) -> u64 {
        let number = self.entered;
        self.entered += 1;
        self.heap.push(Reverse(Entry { at, number, what }));
        number
    }

    /// The next event and its time; at equal times the one entered first.
    pub fn take_next(&mut self) -> Option<(u64, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Entry<T> {
    fn key(&self) -> (u64, u64) {
        (self.at, self.number)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
