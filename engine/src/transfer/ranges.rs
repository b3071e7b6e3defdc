//! Records which ranges of a receive region have arrived.

use alloc::vec::Vec;

/// Disjoint ranges in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Adds `[start, end)`; bytes that arrived before do not count twice.
    pub(crate) fn add(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        let first = self.0.partition_point(|&(_, e)| e < start);
        let last = self.0.partition_point(|&(s, _)| s <= end);
        if first < last {
            start = start.min(self.0[first].0);
            end = end.max(self.0[last - 1].1);
        }
        self.0.splice(first..last, [(start, end)]);
    }

    /// Whether all bytes below `len` have arrived.
    pub(crate) fn cover(&self, len: u64) -> bool {
        len == 0 || self.0.first().is_some_and(|&(start, end)| start == 0 && end >= len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_in_any_order_and_overlap() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (30, 40), (0, 5), (4, 12), (35, 50), (20, 30)] {
            assert!(!ranges.cover(50));
            ranges.add(start, end);
        }
        assert!(ranges.cover(50) && !ranges.cover(51));
        assert_eq!(ranges.0.len(), 1);
    }

    #[test]
    fn a_hole_is_a_hole() {
        let mut ranges = Ranges::default();
        ranges.add(0, 10);
        ranges.add(11, 20);
        assert!(!ranges.cover(20));
        ranges.add(10, 11);
        assert!(ranges.cover(20));
    }
}
