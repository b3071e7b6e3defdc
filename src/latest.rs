//! The latest of many things: the oldest go when there is no room.

use std::collections::VecDeque;

/// See the module.
#[derive(Debug)]
pub(crate) struct Latest<T> {
    kept: VecDeque<T>,
    most: usize,
    dropped: u64,
}

impl<T> Latest<T> {
    /// Room for `most` things, which takes memory only when they are there.
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

    /// The oldest one, which is not kept any longer.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.kept.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Those that are there, the oldest first.
    pub(crate) fn iter(&self) -> std::collections::vec_deque::Iter<'_, T> {
        self.kept.iter()
    }

    /// How many had to go.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_oldest_go() {
        let mut latest = Latest::of(3);
        (0..5).for_each(|one| latest.push(one));
        assert_eq!(latest.iter().copied().collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!((latest.dropped(), latest.pop()), (2, Some(2)));
        latest.clear();
        assert_eq!(latest.pop(), None);
    }
}
