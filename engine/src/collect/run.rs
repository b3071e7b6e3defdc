//! A run: posted receives with one key without wildcards, in order of posting. Most programs post no
//! others, and one comparison finds each of them.

use super::lists::ListKey;
use crate::packet::RequestId;
use alloc::collections::VecDeque;

/// Bit that marks places of receives in a run.
const MARK: u32 = 1 << 31;
/// Marks a removed receive: no request has this identifier.
const GONE: RequestId = RequestId(0);

/// A run of receives. It keeps its key when it becomes empty: a program that waits for each message posts
/// the next receive with the same key.
#[derive(Debug, Default)]
pub(crate) struct Run {
    key: ListKey,
    /// Request and order of posting of each receive; the first is never [`GONE`].
    receives: VecDeque<(RequestId, u64)>,
    /// Number of the first receive.
    first: u32,
    gone: usize,
}

impl Run {
    /// Whether a place belongs to a run.
    #[inline]
    pub(crate) fn owns(place: u32) -> bool {
        place & MARK != 0
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.receives.is_empty()
    }

    /// Whether the run has this key, and so every receive with this key.
    #[inline]
    pub(crate) fn has(&self, key: &ListKey) -> bool {
        self.key == *key
    }

    /// Begins a run with this key; the run must be empty.
    #[inline]
    pub(crate) fn begin(&mut self, key: ListKey) {
        debug_assert!(self.is_empty() && !key.is_wild());
        self.key = key;
    }

    /// Appends a receive with the key of the run, and returns its place.
    #[inline]
    pub(crate) fn push(&mut self, request: RequestId, turn: u64) -> u32 {
        let number = self.first.wrapping_add(self.receives.len() as u32);
        self.receives.push_back((request, turn));
        number | MARK
    }

    /// Returns the key of its receives.
    pub(crate) fn key(&self) -> ListKey {
        self.key
    }

    /// Returns the order of posting of the first receive.
    #[inline]
    pub(crate) fn turn(&self) -> Option<u64> {
        self.receives.front().map(|&(_, turn)| turn)
    }

    /// Removes the first receive.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<RequestId> {
        let (request, _) = self.receives.pop_front()?;
        self.first = self.first.wrapping_add(1);
        if self.gone > 0 {
            self.drop_gone();
        }
        Some(request)
    }

    /// Whether the receive at a place is the first.
    pub(crate) fn is_first(&self, place: u32) -> bool {
        !self.is_empty() && place == self.first | MARK
    }

    /// Removes the receive at a place.
    pub(crate) fn remove(&mut self, place: u32) {
        let index = place.wrapping_sub(self.first) & (MARK - 1);
        if let Some(receive) = self.receives.get_mut(index as usize).filter(|receive| receive.0 != GONE) {
            receive.0 = GONE;
            self.gone += 1;
            self.drop_gone();
        }
    }

    /// Drops removed receives from the front.
    #[cold]
    fn drop_gone(&mut self) {
        while self.receives.front().is_some_and(|receive| receive.0 == GONE) {
            self.receives.pop_front();
            self.first = self.first.wrapping_add(1);
            self.gone -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn receives_leave_in_order_and_from_the_middle_across_a_wraparound() {
        let mut run = Run { first: u32::MAX - 1, ..Run::default() };
        run.begin(ListKey::exact(1, 2, 3));
        let places: Vec<u32> = (1..=5).map(|name| run.push(RequestId(name), name)).collect();
        assert!(places.iter().all(|place| Run::owns(*place)) && run.is_first(places[0]));
        run.remove(places[1]);
        run.remove(places[1]);
        run.remove(places[4]);
        assert_eq!(run.pop(), Some(RequestId(1)));
        assert!(run.is_first(places[2]) && run.turn() == Some(3));
        run.remove(places[2]);
        assert_eq!(run.pop(), Some(RequestId(4)));
        assert!(run.is_empty() && run.pop().is_none());
    }
}
