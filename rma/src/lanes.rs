//! State of unfinished operations, by target rank. A process has operations with few of many ranks, so ranks
//! are stored in pages, each made with its first operation.

/// Ranks of a page. A page of lanes takes 1.3 KB; with half as many, the list of pages takes a byte for each
/// rank of the window instead of half a byte.
const PAGE: usize = 16;

/// A value for each rank; those of whole pages that nobody has changed take no memory.
pub(crate) struct Lanes<T> {
    pages: Box<[Option<Box<[T; PAGE]>>]>,
}

impl<T: Default> Lanes<T> {
    /// Default values for this number of ranks.
    pub(crate) fn new(ranks: usize) -> Lanes<T> {
        Lanes { pages: (0..ranks.div_ceil(PAGE)).map(|_| None).collect() }
    }

    /// Returns the value of a rank; none: it is the default.
    pub(crate) fn get(&self, rank: usize) -> Option<&T> {
        Some(&self.pages[rank / PAGE].as_ref()?[rank % PAGE])
    }

    /// Returns the value of a rank to change it; none: its page does not exist, and the value is the default.
    pub(crate) fn existing_mut(&mut self, rank: usize) -> Option<&mut T> {
        Some(&mut self.pages[rank / PAGE].as_mut()?[rank % PAGE])
    }

    /// Returns the value of a rank to change it.
    pub(crate) fn get_mut(&mut self, rank: usize) -> &mut T {
        let page = &mut self.pages[rank / PAGE];
        &mut page.get_or_insert_with(|| Box::new(std::array::from_fn(|_| T::default())))[rank % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_with_a_changed_value_are_made() {
        let mut lanes: Lanes<u32> = Lanes::new(2 * PAGE + 1);
        assert!(lanes.get(2 * PAGE).is_none() && lanes.existing_mut(0).is_none());
        *lanes.get_mut(2 * PAGE) += 7;
        *lanes.get_mut(PAGE) += 1;
        assert_eq!(
            [0, PAGE - 1, PAGE, 2 * PAGE].map(|rank| lanes.get(rank).copied()),
            [None, None, Some(1), Some(7)]
        );
        assert_eq!(lanes.existing_mut(PAGE + 1).copied(), Some(0));
    }
}
