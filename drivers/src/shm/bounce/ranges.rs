//! Ranges of a bounce buffer, allocated in order.
//!
//! Only the sender tracks the ranges in use: a cell names its range, and the range is free again once the
//! peer has consumed that cell. When no range is in use, allocation restarts at the beginning, so a
//! ping-pong uses the same few lines, which are in the cache.

use std::collections::VecDeque;

/// Ranges begin on a cache line.
const LINE: u32 = 64;

/// The ranges in use.
#[derive(Debug)]
pub struct Ranges {
    len: u32,
    /// Number of the cell that names the range, start of the range, and its end, rounded up to a line.
    used: VecDeque<(u64, u32, u32)>,
}

impl Ranges {
    pub fn new(len: u32) -> Ranges {
        Ranges { len, used: VecDeque::new() }
    }

    /// Allocates `len` bytes for the cell numbered `cell`; none: there is no room now.
    pub fn take(&mut self, cell: u64, len: u32) -> Option<u32> {
        let len = len.div_ceil(LINE) * LINE;
        let start = match (self.used.front(), self.used.back()) {
            (Some(&(_, oldest, _)), Some(&(_, newest, end))) if newest >= oldest => {
                // The ranges in use are contiguous: allocate behind them, else before them.
                if len <= self.len - end { end } else { (len <= oldest).then_some(0)? }
            }
            (Some(&(_, oldest, _)), Some(&(.., end))) => (len <= oldest - end).then_some(end)?,
            _ => (len <= self.len).then_some(0)?,
        };
        self.used.push_back((cell, start, start + len));
        Some(start)
    }

    /// Start of the next range, if there is room for one behind the last.
    #[inline]
    pub fn next(&self) -> u32 {
        self.used.back().map_or(0, |&(.., end)| end)
    }

    /// Shortens the range that was allocated last to `len` bytes, rounded up to lines; the rest is free
    /// again.
    pub fn shrink(&mut self, len: u32) {
        if let Some((_, start, end)) = self.used.back_mut() {
            *end = (*end).min(*start + len.div_ceil(LINE) * LINE);
        }
    }

    /// Frees the range that was allocated last.
    pub fn give_back(&mut self) {
        self.used.pop_back();
    }

    /// Frees the ranges of all cells numbered below `taken`.
    #[inline]
    pub fn free(&mut self, taken: u64) {
        while self.used.front().is_some_and(|(cell, ..)| *cell < taken) {
            self.used.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_never_overlap_and_come_back() {
        let mut ranges = Ranges::new(1024);
        let mut live: VecDeque<(u64, u32, u32)> = VecDeque::new();
        let mut given = 0;
        for step in 0..10_000u64 {
            let len = 1 + (step * 7919 % 300) as u32;
            if let Some(start) = ranges.take(step, len) {
                assert!(start + len <= 1024 && start % 64 == 0);
                let len = 1 + len / 2;
                ranges.shrink(len);
                assert_eq!(ranges.next(), (start + len).next_multiple_of(64));
                assert!(live.iter().all(|&(_, from, to)| start + len <= from || to <= start), "step {step}");
                live.push_back((step, start, start + len));
                given += 1;
            }
            if step % 3 == 0 {
                let taken = live.pop_front().map_or(step, |(cell, ..)| cell + 1);
                ranges.free(taken);
            }
        }
        assert!(given > 3000, "room comes back: {given}");
        ranges.free(u64::MAX);
        assert_eq!(ranges.take(10_000, 1024), Some(0), "an empty one begins at the start");
    }
}
