//! A bounded queue: pushing to a full one drops the oldest element.

use std::collections::VecDeque;

/// A bounded queue of the latest elements.
#[derive(Debug)]
pub(crate) struct Latest<T> {
    kept: VecDeque<T>,
    most: usize,
    dropped: u64,
}

impl<T> Latest<T> {
    /// Makes a queue for `most` elements; memory is allocated as they come.
    pub(crate) fn of(most: usize) -> Latest<T> {
        Latest { kept: VecDeque::new(), most, dropped: 0 }
    }

    pub(crate) fn push(&mut self, one: T) {
        if self.kept.len() == self.most {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(one);
    }

    /// Removes and returns the oldest element.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.kept.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Returns the elements, the oldest first.
    pub(crate) fn iter(&self) -> std::collections::vec_deque::Iter<'_, T> {
        self.kept.iter()
    }

    /// Returns the number of dropped elements.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_the_oldest() {
        let mut latest = Latest::of(3);
        (0..5).for_each(|one| latest.push(one));
        assert_eq!(latest.iter().copied().collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!((latest.dropped(), latest.pop()), (2, Some(2)));
        latest.clear();
        assert_eq!(latest.pop(), None);
    }
}
