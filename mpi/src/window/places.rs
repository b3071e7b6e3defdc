//! Where the memory of the ranks of a node begins in what they have in common.

use super::locks;
use newmadeleine::SharedMemory;

/// Windows begin on pages.
pub(super) const PAGE: usize = SharedMemory::SHORT_PAGE;

/// Where the memory of the ranks of a node is in what they have in common: behind their locks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) starts: Vec<usize>,
    /// Bytes of all.
    pub(super) len: usize,
    /// Where memory of huge pages begins; none: no rank's would fill one.
    pub(super) huge: Option<usize>,
}

impl Places {
    /// `is_apart`: each begins on a page of its own. `huge`: the bytes of a huge page. What begins on a page
    /// begins at a multiple of `least`, too.
    pub(super) fn of(sizes: &[usize], is_apart: bool, huge: Option<usize>, least: usize) -> Places {
        let all: usize = sizes.iter().sum();
        let fills =
            |page: &usize| if is_apart { sizes.iter().any(|size| size >= page) } else { all >= *page };
        let huge = huge.filter(fills);
        let unit = |size: usize| huge.filter(|&page| size >= page).unwrap_or(PAGE).max(least);
        let begin = (sizes.len() * locks::LEN).next_multiple_of(huge.unwrap_or(PAGE).max(least));
        let (mut end, mut starts) = (begin, Vec::new());
        for &size in sizes {
            if is_apart {
                end = end.next_multiple_of(unit(size));
            }
            starts.push(end);
            end += size;
        }
        // The last word is for whoever makes it.
        let len = (end + size_of::<u64>()).next_multiple_of(huge.unwrap_or(PAGE).max(least));
        Places { starts, len, huge: huge.map(|_| begin) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_fills_a_huge_page_begins_on_one() {
        const HUGE_PAGE: usize = 2 << 20;
        let huge = Some(HUGE_PAGE);
        let of = |sizes: &[usize], is_apart| Places::of(sizes, is_apart, huge, PAGE);
        // Each on a page of its own; the second one is too short for a huge one.
        let apart = of(&[3 << 20, 100, 2 << 20], true);
        assert_eq!(apart.starts, [2 << 20, 5 << 20, 6 << 20]);
        assert_eq!((apart.len, apart.huge), (10 << 20, Some(2 << 20)));
        // One behind the other.
        let dense = of(&[1 << 20, 1 << 20, 8], false);
        assert_eq!(dense.starts, [2 << 20, 3 << 20, 4 << 20]);
        assert_eq!((dense.len, dense.huge), (6 << 20, Some(2 << 20)));
        // Nobody fills one, or the system gives none.
        let small = Places::of(&[5000, 8], true, None, PAGE);
        assert_eq!((&small.starts[..], small.len, small.huge), (&[4096, 12288][..], 16384, None));
        assert_eq!(of(&[5000, 8], true), small);
        assert_eq!(Places::of(&[3 << 20, 100, 2 << 20], true, None, PAGE).starts[0], 4096);
    }

    #[test]
    fn memory_begins_where_the_program_wants_it() {
        const UNIT: usize = 1 << 16;
        let apart = Places::of(&[8, 100_000, 8], true, None, UNIT);
        assert_eq!(apart.starts, [UNIT, 2 * UNIT, 4 * UNIT]);
        // One behind the other: only the first can be.
        assert_eq!(Places::of(&[8, 8], false, None, UNIT).starts, [UNIT, UNIT + 8]);
        // Huge pages are longer, or not.
        assert_eq!(Places::of(&[2 << 20, 8], true, Some(2 << 20), UNIT).starts, [2 << 20, 4 << 20]);
        assert_eq!(Places::of(&[2 << 20, 8], true, Some(2 << 20), 4 << 20).starts, [4 << 20, 8 << 20]);
    }
}
